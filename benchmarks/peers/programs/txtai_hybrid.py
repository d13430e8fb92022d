"""txtai: its embedded hybrid of vectors (faiss) and keywords, with the content in SQLite."""

from __future__ import annotations

from typing import Any

from txtai import Embeddings

from benchmarks.peers.types import Answer, Target, Texts

CANDIDATES = 1000
"""Passages that a search by vectors and words yields before a filter is applied to them."""


def build(texts: Texts, target: Target) -> Any:
    """Index the passages, and save the index."""
    embeddings = Embeddings(path=str(target.weights), hybrid=True, content=True)
    embeddings.index(
        (passage.id, {"text": passage.text, "document": passage.document}, None)
        for passage in texts.passages
    )
    embeddings.save(str(target.folder))
    return embeddings


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages; a filter is a condition in SQL."""
    if document is None:
        return [Answer(row["id"]) for row in index.search(phrase, k)]
    rows = index.search(
        f"SELECT id, score FROM txtai WHERE similar(:phrase, {CANDIDATES})"
        f" AND document = :document LIMIT {k}",
        parameters={"phrase": phrase, "document": document},
    )
    return [Answer(row["id"]) for row in rows]
