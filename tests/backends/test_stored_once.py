"""A server stores word codes and vectors once, in their columns: `_source` lacks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import IndexStoreError
from tests.helpers import live_servers

CALLS = [
    {"id": name, "text": f"{text} {name} is about something else, as calls are."}
    for name, text in (
        ("refund", "I want my money back. But"),
        ("hold", "I was on hold for an hour. This call"),
        ("bill", "This bill is too high for me. My call"),
    )
]
REFUND = [{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.05}]


@pytest.fixture(params=live_servers.URLS)
def client(request: pytest.FixtureRequest, tiny_encoder: None) -> Iterator[Client]:
    with connect(request.param) as connected:
        yield connected


@pytest.fixture
def index(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    url = request.node.callspec.params["client"]
    with live_servers.unique_index_name(url) as name:
        client.ingest(CALLS, index=name)
        yield name


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    assert isinstance(client.backend, ServerBackend)
    return client.backend.server.request(method, path, body=body, params={"refresh": True})


def fetch_source(client: Client, index: str) -> dict[str, Any]:
    source: dict[str, Any] = send(client, "GET", f"/{index}/_doc/refund%230")["_source"]
    return source


def read_answers(client: Client, index: str) -> tuple[Any, ...]:
    """Return what each reader of word codes says of the index."""
    hits = [
        (alpha, hit.id, round(hit.score, 5), tuple(span.text for span in hit.spans))
        for alpha in (0.0, 0.5, 1.0)
        for hit in client.query("money back", index=index, alpha=alpha)
    ]
    return (
        hits,
        [(match.id, match.text) for match in client.mine(REFUND, index=index)],
        [similar_span.text for similar_span in client.similar("money back", index=index)],
    )


def test_source_has_what_a_reader_wants_and_neither_codes_nor_vectors(
    client: Client, index: str
) -> None:
    source = fetch_source(client, index)
    assert "tokens" not in source
    assert source["text"] == CALLS[0]["text"]
    assert source["spans"]
    assert all(set(span) == {"start", "end", "text"} for span in source["spans"])


def test_nothing_that_is_done_to_an_index_needs_them_there(client: Client, index: str) -> None:
    expected = read_answers(client, index)
    assert all(expected)
    assert client.verify(index=index, full=True).is_sound
    client.reindex(index)
    assert read_answers(client, index) == expected
    assert "tokens" not in fetch_source(client, index)
    client.reindex(index, options={"quantization": "none"})
    assert read_answers(client, index) == expected
    client.ingest([{"id": "hold", "text": "Nobody answered the phone."}], index=index)
    assert client.delete(["bill"], index=index) == 1
    verification = client.verify(index=index, full=True)
    assert (verification.is_sound, verification.documents) == (True, 2)
    assert client.query("answered the phone", index=index).hits[0].id == "hold"


@pytest.mark.parametrize("full", [False, True])
def test_a_passage_whose_codes_a_partial_update_lost_is_told_and_mended(
    client: Client, index: str, full: bool
) -> None:
    before = read_answers(client, index)
    change = {"doc": {"metadata": {"checked": True}}}
    send(client, "POST", f"/{index}-000001/_update/refund%230", change)
    verification = client.verify(index=index, full=full, sample=0)
    (finding,) = verification.findings
    assert (finding.kind, finding.document_id, finding.ordinal) == ("codes", "refund", 0)
    assert "word codes are missing: a partial update" in finding.found
    assert finding.remedy == f"hybrid-search verify --index {index} --repair mends it"
    with pytest.raises(IndexStoreError, match=r"'refund#0' are damaged or missing: .*--repair"):
        client.reindex(index)
    assert client.verify(index=index, repair=True).is_sound
    # until segments are merged, BM25 counts the replaced passage, too
    assert read_answers(client, index)[1:] == before[1:]
    assert fetch_source(client, index)["metadata"] == {"checked": True}
