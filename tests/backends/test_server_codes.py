"""Word codes that servers send with the passages of both legs: what they cost, and damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pybase64
import pytest

import hybrid_search
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.observability.traffic import count_traffic, note_answer
from hybrid_search.text import word_codes
from tests.helpers import live_servers
from tests.helpers.server_index import read_tokens
from tests.helpers.tiny_encoder import TinyEncoder, make_prior, make_request

PHRASE = "w7 w14 w21"


def make_documents(count: int) -> list[dict[str, Any]]:
    """Return documents of 60 words, the second and third of which are within one token."""
    rows = [[f"w{number * step % 911}" for step in range(60)] for number in range(1, count + 1)]
    return [
        {"id": f"call-{number}", "text": f"{row[0]} {row[1]}/{' '.join(row[2:])}"}
        for number, row in enumerate(rows, 1)
    ]


@pytest.fixture
def client(tiny_encoder: None, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of each server, whose encoder has a model of clauses."""
    monkeypatch.setattr(TinyEncoder, "load_prior", lambda *_: make_prior(), raising=False)
    with hybrid_search.connect(url) as connected:
        yield connected


@pytest.fixture
def index(client: Client, url: str) -> Iterator[str]:
    """An index of 150 documents."""
    with live_servers.unique_index_name(url) as name:
        client.ingest(make_documents(150), index=name)
        yield name


def damage(client: Client, index: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change the word codes of the only passage of ``call-1``, which has no covering spans then."""
    assert isinstance(client.backend, ServerBackend)
    server = client.backend.server
    body = {"query": {"ids": {"values": ["call-1#0"]}}, "docvalue_fields": ["tokens"]}
    (hit,) = server.request("POST", f"/{index}/_search", body=body)["hits"]["hits"]
    tokens = change(pybase64.b64decode(read_tokens(hit)["tokens"]))
    codes = {"tokens": pybase64.b64encode_as_string(tokens)} if tokens is not None else {}
    server.request(
        "PUT",
        f"/{index}-000001/_doc/call-1%230",
        params={"refresh": True},
        body={**hit["_source"], **codes, "spans": [], "span_count": 0},
    )


def test_answers_are_counted_while_somebody_counts() -> None:
    note_answer(5)
    with count_traffic() as traffic:
        note_answer(7)
        note_answer(8)
    assert traffic["answer_bytes"] == 15


@pytest.mark.parametrize("url", live_servers.URLS)
def test_a_query_says_how_many_bytes_came(client: Client, index: str) -> None:
    """BM25 alone needs the word codes of its window, and no more."""
    by_words, by_both = (client.query(PHRASE, index=index, alpha=alpha) for alpha in (0.0, 0.5))
    assert 0 < by_words.plan["answer_bytes"] < by_both.plan["answer_bytes"]


@pytest.mark.parametrize("url", live_servers.URLS)
def test_all_passages_that_the_legs_propose_are_scored_exactly(client: Client, index: str) -> None:
    assert isinstance(client.backend, ServerBackend)
    request = make_request(PHRASE, lexical=False)
    found = client.backend.find(index, request).passages
    assert len(found) == 100
    codes = {passage.key: passage.tokens for passage in client.backend.scan_codes(index)}
    best = {key: word_codes.cosines(request.vector, own).max() for key, own in codes.items()}
    highest = [passage.cosines.max() for passage in found if passage.cosines is not None]
    assert highest == pytest.approx([best[passage.key] for passage in found], abs=1e-5)
    assert highest == pytest.approx(sorted(best.values(), reverse=True)[:100], abs=1e-5)


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
    "a missing centroid": lambda codes: codes[:24] + b"\xff\xff" + codes[26:],
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("url", live_servers.URLS)
def test_damaged_codes_are_told_and_another_document_takes_the_place(
    client: Client, index: str, change: Callable[[bytes], bytes | None]
) -> None:
    damage(client, index, change)
    for options in ({"alpha": 0.0}, {"alpha": 0.5}, {"alpha": 1.0}, {"not_": "w5"}):
        result = client.query("w1 w2 w3", index=index, **options)  # the words of call-1
        (warning,) = result.plan["warnings"]
        assert "damaged" in warning
        assert len(result.hits) == 10
