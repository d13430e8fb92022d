"""OpenSearch scores the best spans of each proposed passage by our script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pybase64
import pytest

from hybrid_search import connect
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.first_pass import BestSpansByKey
from hybrid_search.client import Client
from hybrid_search.text import word_codes
from hybrid_search.text.span_prior import SpanPrior
from tests.backends.test_server_short_codes import (
    check_damage_is_told,
    make_documents,
    overwrite_passage,
)
from tests.helpers import live_servers
from tests.helpers.server_index import read_tokens
from tests.helpers.tiny_encoder import TinyEncoder, make_prior, make_request
from tools.servers import start

PHRASE = "w7 w14 w21"
SERVER = "opensearch-3.5.0"


@pytest.fixture
def clauses(tiny_encoder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tiny encoder have a model of clauses."""
    monkeypatch.setattr(TinyEncoder, "load_prior", lambda *_: make_prior(), raising=False)


@pytest.fixture
def client(clauses: None, url: str) -> Iterator[Client]:
    with live_servers.open_client(url, "opensearch") as connected:
        yield connected


@pytest.fixture
def index(client: Client, url: str) -> Iterator[str]:
    """An index of 150 documents."""
    with live_servers.unique_index_name(url) as name:
        client.ingest(make_documents(150), index=name)
        yield name


def propose(client: Client, index: str, prior: SpanPrior | None = None) -> BestSpansByKey:
    """Return what the server computed of the passages of both legs."""
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    request = replace(make_request(PHRASE), prior=prior)
    _, proposals = backend._leg_search.run(index, request)
    return proposals.best_spans


def damage(client: Client, index: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change the word codes of the document ``call-1`` on the server."""
    assert isinstance(client.backend, ServerBackend)
    body = {"query": {"ids": {"values": ["call-1#0"]}}, "docvalue_fields": ["tokens"]}
    (hit,) = client.backend.server.request("POST", f"/{index}/_search", body=body)["hits"]["hits"]
    source = hit["_source"]
    tokens = change(pybase64.b64decode(read_tokens(hit)["tokens"]))
    source |= {"tokens": pybase64.b64encode_as_string(tokens)} if tokens is not None else {}
    overwrite_passage(client, index, source)


@pytest.mark.parametrize("prior", [None, make_prior()], ids=["cosines", "scores"])
@pytest.mark.parametrize("url", live_servers.URLS)
def test_the_server_computes_the_same_as_we_do(
    client: Client, index: str, prior: SpanPrior | None
) -> None:
    proposed = propose(client, index, prior)
    assert len(proposed) > 100
    vector = make_request(PHRASE).vector
    codes = {passage.key: passage.tokens for passage in client.backend.scan_codes(index)}
    for key, best in proposed.items():
        cosines = word_codes.cosines(vector, codes[key])
        scores = cosines + prior.score_spans(codes[key]) if prior else cosines
        # the vector travels with five decimals, and its length is 1
        assert best is not None
        assert best.cosine == pytest.approx(float(cosines.max()), abs=2e-5)
        assert best.score == pytest.approx(float(scores.max()), abs=2e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("url", live_servers.URLS)
def test_a_page_is_that_of_all_passages_scored_here(
    client: Client, index: str, alpha: float
) -> None:
    """With a least score all passages of both legs are scored here, even if it is 0."""
    few = client.query(PHRASE, index=index, size=5, alpha=alpha)
    every = client.query(PHRASE, index=index, size=5, alpha=alpha, min_score=0.0)
    assert "warnings" not in few.plan
    assert few.plan["answer_bytes"] < every.plan["answer_bytes"]
    assert few.total == every.total
    assert list(few) == list(every)


def point_at_missing_centroid(codes: bytes) -> bytes:
    """Let the first word be near a centroid far behind the last."""
    return codes[:24] + b"\xff\xff" + codes[26:]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "none": lambda _: None,
    "cut": lambda codes: codes[:-7],
    "a header alone": lambda codes: codes[:24],
    "some bytes": lambda _: b"abc",
    "more words than bytes": lambda codes: codes[:12] + b"\xff\xff\xff\x7f" + codes[16:],
    "a negative count": lambda codes: codes[:16] + b"\xff\xff\xff\xff" + codes[20:],
    "another dimension": lambda codes: codes[:6] + b"\x07\x00" + codes[8:],
    "other bits": lambda codes: codes[:4] + b"\x03" + codes[5:],
    "another codebook": lambda codes: codes[:8] + b"abcd" + codes[12:],
    "a missing centroid": point_at_missing_centroid,
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("url", live_servers.URLS)
def test_damaged_codes_are_told_and_spoil_no_query(
    client: Client, index: str, change: Callable[[bytes], bytes | None]
) -> None:
    damage(client, index, change)
    assert propose(client, index).get("call-1#0") is None
    check_damage_is_told(client, index)


@pytest.mark.parametrize("url", live_servers.URLS)
def test_a_request_without_spans_or_of_many_passages_runs_no_script(
    client: Client, index: str
) -> None:
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    for request in (make_request(PHRASE, semantic=False), make_request(PHRASE, window=5000)):
        first_pass, _ = backend._leg_search.run(index, request)
        assert not first_pass.runs_script


@pytest.mark.server
def test_a_server_that_runs_no_scripts_answers_the_same_and_says_what_it_costs(
    clauses: None,
) -> None:
    texts, hits, plans = make_documents(150), [], []
    for settings in ({}, {"script.allowed_types": "none"}):
        with start(SERVER, settings) as server, connect(server.test_url) as client:
            client.ingest(texts, index="calls")
            for _ in range(2):  # the second query knows that no script runs
                result = client.query(PHRASE, index="calls")
            hits.append([(hit.id, hit.start, hit.score) for hit in result])
            plans.append(result.plan)
    assert hits[0] == hits[1]
    assert "warnings" not in plans[0]
    (warning,) = plans[1]["warnings"]
    assert "script.allowed_types" in warning
    assert plans[0]["answer_bytes"] < plans[1]["answer_bytes"]
