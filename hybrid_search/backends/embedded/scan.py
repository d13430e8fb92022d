"""Lists every passage of an embedded index with its faults.

Faults are rows without the rows that they belong to, and vectors that no graph contains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hybrid_search.backends.codes_fault import find_codes_fault
from hybrid_search.backends.embedded import graph_segments, schema, sql
from hybrid_search.backends.embedded.checksums import (
    CHANGED_CODES,
    find_content_fault,
    is_changed,
)
from hybrid_search.backends.embedded.graph_segments import DamagedSegmentError, Graph, Segment
from hybrid_search.backends.types import Fault, IndexSpec, ListedPassage
from hybrid_search.text import token_codes
from hybrid_search.text.types import TokenCodes

ROWS = """
SELECT passage, documents.id, coalesce(ordinal, -1), documents.passages, source_hash,
    coalesce(spans, 0), tokens.passage IS NOT NULL, texts_docsize.id IS NOT NULL, {codes},
    {checksums}, documents.metadata, start, layout, {terms}, {text}
FROM documents
LEFT JOIN passages USING (document)
LEFT JOIN tokens USING (passage)
LEFT JOIN texts_docsize ON texts_docsize.id = passage
LEFT JOIN texts_content ON texts_content.id = passage
{join}
ORDER BY documents.document, ordinal"""

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

VECTOR_TOLERANCE = 1
"""How far a number of a stored int8 vector may be off: another machine may round otherwise."""


def iterate_passages(
    connection: sqlite3.Connection, folder: Path, spec: IndexSpec, *, full: bool
) -> Iterator[ListedPassage]:
    """Yield all passages, then all orphans, in one read transaction; `folder` has the graphs.

    With `full` all token codes are read, and the vectors in the graphs compared with them.
    """
    connection.execute("BEGIN")
    graphs = _Graphs(connection, folder, spec)
    rows = connection.execute(_build_query(connection, full=full))
    for passage, id_, ordinal, count, source_hash, spans, tokens, text, data, *checked in rows:
        faults: list[Fault] = []
        row = (id_, ordinal, count, source_hash, spans)
        if [type(value) for value in row] != [str, int, int, str, int]:
            known_id = id_ if type(id_) is str else ""
            what = "its row is damaged: a number or text in it is neither"
            damage = Fault("orphan" if known_id else "id", what)
            yield ListedPassage(passage, known_id, -1, 0, "", (damage,))
            continue
        if passage is not None:
            faults += [] if tokens else [Fault("codes", "its token codes are missing")]
            faults += [] if text else [Fault("text", "its text is missing")]
        if text:
            faults += _find_changed_content(id_, ordinal, *checked)
        if full and is_changed(data, checked[1]):
            faults.append(CHANGED_CODES)
        elif tokens:
            codes = token_codes.read(data) if full else None
            faults += _find_faults(graphs, passage, spans, codes)
        yield ListedPassage(passage, id_, ordinal, count, source_hash, tuple(faults))
    for description, query in ORPHANS.items():
        for (number,) in connection.execute(query):
            orphan = Fault("orphan", f"{description} ({number}) that belongs to nothing")
            yield ListedPassage(number, "", -1, 0, "", (orphan,))


def _build_query(connection: sqlite3.Connection, *, full: bool) -> str:
    has_terms, has_checksums = sql.has_terms(connection), schema.has_checksums(connection)
    return ROWS.format(
        codes="data" if full else "NULL",
        checksums="checksums.content, checksums.codes" if has_checksums else "NULL, NULL",
        join="LEFT JOIN checksums USING (passage)" if has_checksums else "",
        terms="c0" if has_terms else "''",
        text="c1" if has_terms else "c0",
    )


def _find_changed_content(
    id_: str, ordinal: int, checksum: int | None, _: int | None, metadata: object, *rest: object
) -> Iterator[Fault]:
    """Yield the fault of a passage whose content is not the one that was written."""
    start, layout, terms, text = rest
    fault = find_content_fault(id_, metadata, ordinal, start, layout, terms, text, checksum)
    if fault:
        yield fault


def _find_faults(
    graphs: _Graphs, passage: int, spans: int, codes: TokenCodes | None
) -> Iterator[Fault]:
    """Yield what is wrong with the codes, if they are given, or with the vectors of a passage."""
    codes_fault = find_codes_fault(codes, graphs.spec.dimension) if codes is not None else None
    if codes_fault:
        yield codes_fault
    elif vectors_fault := graphs.find_fault(passage, spans, codes):
        yield Fault("vectors", vectors_fault)


class _Graphs:
    """All segments of an index: the opened graph, or what is wrong with its file."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, spec: IndexSpec) -> None:
        self.spec = spec
        segments = graph_segments.list_segments(connection)
        graph_segments.find_faults(segments, folder, again=True)
        self._graphs = {segment: self._open(segment, folder) for segment in segments}
        self._last_sealed = max((segment.last for segment in self._graphs), default=0)

    def _open(self, segment: Segment, folder: Path) -> Graph | str:
        try:
            return graph_segments.open_graph(segment, folder, self.spec.dimension)
        except DamagedSegmentError as error:
            return str(error)

    def find_fault(self, passage: int, spans: int, codes: TokenCodes | None) -> str | None:
        """Return why a passage's covering windows are not in a graph as they should, or None.

        Their number is `spans`; with `codes` their vectors are compared, too. A passage that is
        newer than all graphs has no fault.
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
        if present != spans:
            return f"its graph has {present} of its {spans} vectors"
        if codes is None:
            return None
        keys, expected = graph_segments.build_keyed_vectors(passage, codes, self.spec.policy)
        if len(keys) != spans:
            return f"it has {spans} vectors, and its codes give {len(keys)}"
        stored = np.array(graph.get(keys)).reshape(expected.shape)
        differences = np.abs(stored.astype(np.int16) - expected).max(axis=1, initial=0)
        wrong = int(np.count_nonzero(differences > VECTOR_TOLERANCE))
        return f"{wrong} of its vectors in the graph are not those of its codes" if wrong else None
