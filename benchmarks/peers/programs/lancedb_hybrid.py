"""LanceDB: vectors and its full-text index, joined by its own reranker (RRF).

Without an index of vectors: its documentation advises none below 100,000 rows, and a search that
looks at all of them is exact.
"""

from __future__ import annotations

from typing import Any

import lancedb
from lancedb.embeddings import get_registry
from lancedb.pydantic import LanceModel, Vector
from lancedb.rerankers import RRFReranker

from benchmarks.peers.types import Answer, Target, Texts


def build(texts: Texts, target: Target) -> Any:
    """Index the passages."""
    embedder = get_registry().get("sentence-transformers").create(name=str(target.weights))

    class Row(LanceModel):  # type: ignore[misc]  # lancedb is not installed where mypy runs
        id: str
        document: str
        text: str = embedder.SourceField()
        vector: Vector(embedder.ndims()) = embedder.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(target.folder).create_table(target.index, schema=Row)
    table.add(
        [
            {"id": passage.id, "document": passage.document, "text": passage.text}
            for passage in texts.passages
        ]
    )
    table.create_fts_index("text")
    return table


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages; a filter is a condition in SQL."""
    query = index.search(phrase, query_type="hybrid").rerank(RRFReranker()).limit(k)
    if document is not None:
        query = query.where(f"document = '{document}'")
    return [Answer(row["id"]) for row in query.to_list()]
