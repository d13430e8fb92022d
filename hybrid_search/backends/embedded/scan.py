"""Lists every passage of an embedded index with its faults.

Faults are rows without the rows that they belong to, and vectors that no graph contains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hybrid_search.backends.embedded import graph_segments
from hybrid_search.backends.types import Fault, ListedPassage

ROWS = """
SELECT passage, documents.id, coalesce(ordinal, -1), documents.passages, source_hash,
    coalesce(spans, 0), tokens.passage IS NOT NULL, texts_docsize.id IS NOT NULL
FROM documents
LEFT JOIN passages USING (document)
LEFT JOIN tokens USING (passage)
LEFT JOIN texts_docsize ON texts_docsize.id = passage
ORDER BY document, ordinal"""

ORPHANS = {
    "a passage": (
        "SELECT passage FROM passages WHERE document NOT IN (SELECT document FROM documents)"
    ),
    "the token codes of a passage": (
        "SELECT passage FROM tokens WHERE passage NOT IN (SELECT passage FROM passages)"
    ),
    "the text of a passage": (
        "SELECT id FROM texts_docsize WHERE id NOT IN (SELECT passage FROM passages)"
    ),
}
"""Orphan checks: a kind of row, and the SQL that finds rows of it without a parent."""


def iterate_passages(connection: sqlite3.Connection, folder: Path) -> Iterator[ListedPassage]:
    """Yield all passages, then all orphans, in one read transaction; `folder` has the graphs."""
    connection.execute("BEGIN")
    graphs = _Graphs(connection, folder)
    for passage, id_, ordinal, count, source_hash, spans, tokens, text in connection.execute(ROWS):
        faults = (
            ()
            if passage is None
            else _find_faults(graphs, passage, spans, tokens=bool(tokens), text=bool(text))
        )
        yield ListedPassage(passage, id_, ordinal, count, source_hash, faults)
    for description, query in ORPHANS.items():
        for (number,) in connection.execute(query):
            orphan = Fault("orphan", f"{description} ({number}) that belongs to nothing")
            yield ListedPassage(number, "", -1, 0, "", (orphan,))


def _find_faults(
    graphs: _Graphs, passage: int, spans: int, *, tokens: bool, text: bool
) -> tuple[Fault, ...]:
    faults = [] if tokens else [Fault("codes", "its token codes are missing")]
    faults += [] if text else [Fault("text", "its text is missing")]
    missing_vectors = graphs.find_fault(passage, spans) if tokens else None
    return (*faults, Fault("vectors", missing_vectors)) if missing_vectors else tuple(faults)


class _Graphs:
    """All segments of an index: the opened graph, or what is wrong with its file."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._graphs = {
            segment: segment.find_fault(folder) or graph_segments.open_graph(segment, folder)
            for segment in graph_segments.list_segments(connection)
        }
        self._last_sealed = max((segment.last for segment in self._graphs), default=0)

    def find_fault(self, passage: int, spans: int) -> str | None:
        """Return why not all of a passage's `spans` covering windows are in a graph, or None.

        A passage that is newer than all graphs has no fault.
        """
        if passage > self._last_sealed or not spans:
            return None
        graph = next(
            (
                graph
                for segment, graph in self._graphs.items()
                if segment.first <= passage <= segment.last
            ),
            "no graph has its vectors",
        )
        if isinstance(graph, str):
            return graph
        keys = np.uint64(passage << graph_segments.SPAN_BITS) + np.arange(spans, dtype=np.uint64)
        present = int(np.count_nonzero(graph.contains(keys)))
        return None if present == spans else f"its graph has {present} of its {spans} vectors"
