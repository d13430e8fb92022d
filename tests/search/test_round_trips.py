"""How often a query calls its backend: each call is a round trip where the index is on a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.client import Client

DOCUMENTS = [
    {"id": "kettle", "city": "Ulm", "text": "The kettle broke. I want my money back."},
    {"id": "refund", "city": "Bonn", "text": "A refund was promised; the refund never came."},
    {"id": "card", "city": "Ulm", "text": "My card was stolen on the train, block it."},
]
PLAIN = {"answer_by_head": 1, "find": 1, "fetch_contents": 1}


@pytest.fixture(scope="module")
def filled_client(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`DOCUMENTS` on each backend. Only to be read."""
    with connect(module_url) as client:
        client.ingest(DOCUMENTS, rejects=tmp_path_factory.mktemp("trips") / "rejected.jsonl")
        yield client


class CountingBackend:
    """Passes calls to a backend, and counts them by name."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._backend, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return method(*args, **kwargs)

        return call


@pytest.mark.parametrize(
    ("phrases", "options", "extra"),
    [
        (["money"], {}, {}),
        (["money"], {"alpha": 0.0}, {}),
        (["money"], {"explain": True, "min_score": 0.1}, {}),
        (["money"], {"group_by": "passage", "where": {"city": "Ulm"}}, {}),
        (["money"], {"sort": "city"}, {}),
        (["money"], {"sort": "id"}, {}),
        (["money"], {"facets": ["city"]}, {}),
        (["money"], {"facets": ["city"], "sort": "-city"}, {}),
        (["money"], {"facets": ["city"], "facets_over": "matches"}, {"count_facets": 1}),
        (["money"], {"highlight": True}, {"find_highlights": 1}),
        (
            ["money"],
            {"highlight": True, "sort": "city", "facets": "city", "facets_over": "matches"},
            {"find_highlights": 1, "count_facets": 1},
        ),
        (["money", "card"], {}, {"find": 1}),
        (["money"], {"feedback": 10}, {"find": 1}),
        (
            ["money", "card"],
            {"highlight": True},
            {"find": 1, "find_highlights": 2},
        ),
    ],
)
def test_a_query_calls_its_backend_so_often(
    filled_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    phrases: list[str],
    options: dict[str, Any],
    extra: dict[str, int],
) -> None:
    expected = filled_client.query(phrases, **options)
    backend = CountingBackend(filled_client.backend)
    monkeypatch.setattr(filled_client, "backend", backend)
    result = filled_client.query(phrases, **options)
    assert [hit.to_dict() for hit in result] == [hit.to_dict() for hit in expected]
    assert backend.calls == Counter(PLAIN) + Counter(extra)
