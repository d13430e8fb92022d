"""What ships here: BM25 and spans, embedded or on a server, by the URL alone."""

from __future__ import annotations

from typing import Any

import hybrid_search
from benchmarks.peers.types import Answer, Target, Texts


def build(texts: Texts, target: Target) -> Any:
    """Ingest the documents, which are cut into passages on the way."""
    with hybrid_search.connect(target.url, model=target.weights) as client:
        client.ingest(texts.documents, index=target.index)
    return hybrid_search.connect(target.url, model=target.weights), target.index


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages with the offsets of their best span."""
    client, name = index
    where = {"id": document} if document is not None else None
    result = client.query(phrase, index=name, size=k, where=where, group_by="passage")
    return [
        Answer(f"{hit.id}#{hit.passage}", (hit.spans[0].start, hit.spans[0].end))
        for hit in result.hits
    ]
