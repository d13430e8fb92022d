"""Two documents for the tests of the backends, and all passages that a backend has stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.base import Backend
from tests.helpers.tiny_encoder import make_entries, make_request, make_spec

LONG = {"id": "x", "turns": [{"text": f"turn{number} " + "blah " * 60} for number in range(4)]}
SHORT = {"id": "x", "text": "just this"}


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """Everything that a store returns of a passage."""

    document_id: str
    ordinal: int
    start: int
    text: str
    layout: str
    metadata: str


def read_passages(store: Backend, index: str = "calls") -> list[PassageRecord]:
    """Return all passages of a small index."""
    search_request = make_request("anything", window=10_000, lexical=False)
    found = store.find(index, search_request).passages
    contents = store.fetch_contents(index, [passage.key for passage in found])
    records = []
    for passage in found:
        content = contents[passage.key]
        records.append(
            PassageRecord(
                passage.document_id,
                passage.ordinal,
                content.start,
                content.text,
                content.layout,
                content.metadata,
            )
        )
    return sorted(records, key=lambda record: (record.document_id, record.ordinal))


def write_documents(store: Backend, *documents: Mapping[str, Any]) -> list[str]:
    """Write documents, and return the reasons of those that were refused."""
    with store.writer("calls", make_spec()) as writer:
        return [
            refusal.reason
            for document in documents
            for refusal in writer.write(make_entries(document))
        ]
