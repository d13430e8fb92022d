"""Every passage of an embedded index, and what is wrong with it: rows that name rows which are not there, vectors that no graph has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hybrid_search.backends.base import Fault, Listed
from hybrid_search.backends.embedded import segments

ROWS = """
SELECT passage, documents.id, coalesce(ordinal, -1), documents.passages, source_hash, coalesce(spans, 0),
    tokens.passage IS NOT NULL, texts_docsize.id IS NOT NULL
FROM documents LEFT JOIN passages USING (document) LEFT JOIN tokens USING (passage) LEFT JOIN texts_docsize ON texts_docsize.id = passage
ORDER BY document, ordinal"""

STRAY = {
    "a passage": "SELECT passage FROM passages WHERE document NOT IN (SELECT document FROM documents)",
    "the token codes of a passage": "SELECT passage FROM tokens WHERE passage NOT IN (SELECT passage FROM passages)",
    "the text of a passage": "SELECT id FROM texts_docsize WHERE id NOT IN (SELECT passage FROM passages)",
}
"""What may have lost that to which it belongs, and which those are."""


def listed(connection: sqlite3.Connection, folder: Path) -> Iterator[Listed]:
    """All passages, in one read transaction; `folder` holds the graphs."""
    connection.execute("BEGIN")
    graphs = _Graphs(connection, folder)
    for passage, id_, ordinal, count, source_hash, spans, tokens, text in connection.execute(ROWS):
        faults = () if passage is None else _faults(graphs, passage, spans, tokens=bool(tokens), text=bool(text))
        yield Listed(passage, id_, ordinal, count, source_hash, faults)
    for what, query in STRAY.items():
        for (number,) in connection.execute(query):
            yield Listed(number, "", -1, 0, "", (Fault("orphan", f"{what} ({number}) that belongs to nothing"),))


def _faults(graphs: _Graphs, passage: int, spans: int, *, tokens: bool, text: bool) -> tuple[Fault, ...]:
    found = [] if tokens else [Fault("codes", "its token codes are not there")]
    found += [] if text else [Fault("text", "its text is not there")]
    lost = graphs.fault(passage, spans) if tokens else None
    return (*found, Fault("vectors", lost)) if lost else tuple(found)


class _Graphs:
    """The segments that `connection` sees, each opened, or what is wrong with it."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._graphs = {each: each.fault(folder) or segments.viewed(each, folder) for each in segments.listed(connection)}
        self._sealed = max((each.last for each in self._graphs), default=0)

    def fault(self, passage: int, spans: int) -> str | None:
        """Why its `spans` covering spans are not all in a graph; None where they are, or where it is newer than the graphs."""
        if passage > self._sealed or not spans:
            return None
        graph = next((graph for each, graph in self._graphs.items() if each.first <= passage <= each.last), "no graph has its vectors")
        if isinstance(graph, str):
            return graph
        keys = np.uint64(passage << segments.SPAN_BITS) + np.arange(spans, dtype=np.uint64)
        there = int(np.count_nonzero(graph.contains(keys)))
        return None if there == spans else f"its graph has {there} of its {spans} vectors"
