"""Keeps the nearest-neighbour graphs in step with the stored token codes.

The newest graph grows until it is full and is then sealed; a lost or damaged one is rebuilt.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from usearch.index import Index

from hybrid_search.backends.embedded import graph_segments
from hybrid_search.backends.embedded.graph_segments import DamagedSegmentError, Keys, Segment
from hybrid_search.backends.types import IndexSpec
from hybrid_search.text.types import Codes

_log = logging.getLogger(__name__)

SEGMENT_SPANS = 100_000
"""Covering windows in a sealed segment: about 55 MB at 384 dimensions.

Only the newest segment is in this process's own memory.
"""

EXACT_SPANS = 20_000
"""A tail of fewer covering windows than this gets no graph.

Comparing so many one by one takes about 2 ms.
"""

STALE_SHARE = 0.5
"""All graphs are rebuilt if more than this share of their windows is of deleted passages."""

ADD_SPANS = 4096
"""Covering windows added to the graph in one call, so that it can use all cores."""


class GraphBuilder:
    """Grows the graphs in `folder` from the token codes that `connection` reads.

    Only the writer of an index has one.
    """

    def __init__(self, connection: sqlite3.Connection, folder: Path, spec: IndexSpec) -> None:
        self._connection, self._folder, self._spec = connection, folder, spec
        self._reset(
            max((segment.last for segment in graph_segments.list_segments(connection)), default=0)
        )

    def _reset(self, sealed: int) -> None:
        self._last_sealed = self._last_grown = sealed
        self._graph: Index | None = None
        self._extended_segment: Segment | None = None

    def repair(self) -> None:
        """Rebuild every segment whose file is missing, outdated or damaged.

        Files that a killed writer left behind are deleted.
        """
        graph_segments.check_folder(self._folder)
        segments = graph_segments.list_segments(self._connection)
        graph_segments.find_faults(segments, self._folder)  # all together, on all cores
        for segment in segments:
            try:
                graph_segments.open_graph(segment, self._folder, self._spec.dimension)
            except DamagedSegmentError as error:
                self._rebuild(segment, str(error))
        graph_segments.sweep(self._folder, graph_segments.list_segments(self._connection))

    def _rebuild(self, segment: Segment, fault: str) -> Segment:
        _log.warning(
            "%s: rebuilt from the codes of passages %d to %d", fault, segment.first, segment.last
        )
        graph = graph_segments.create_graph(self._spec.dimension)
        for keys, codes, _ in _chunks(self._iterate_stored(segment.first, segment.last)):
            graph.add(keys, codes)
        return graph_segments.seal(
            self._connection, self._folder, graph, segment.first, segment.last, replaced=segment
        )

    def grow(self) -> None:
        """Add the passages committed since the last call; a small tail stays without a graph."""
        newest = self._select_int("SELECT coalesce(max(passage), 0) FROM passages")
        if (
            self._graph is None
            and self._select_int(
                "SELECT coalesce(sum(spans), 0) FROM passages WHERE passage > ?", self._last_sealed
            )
            < EXACT_SPANS
        ):
            return
        for keys, codes, last in _chunks(self._iterate_stored(self._last_grown + 1, newest)):
            graph = self._open_graph()
            graph.add(keys, codes)
            self._last_grown = last
            if len(graph) >= SEGMENT_SPANS:
                self._seal()

    def finish(self) -> None:
        """Seal the newest graph; rebuild all if most of their windows are of deleted passages."""
        self.grow()
        self._seal()
        total = sum(segment.vectors for segment in graph_segments.list_segments(self._connection))
        alive = self._select_int(
            "SELECT coalesce(sum(spans), 0) FROM passages WHERE passage <= ?", self._last_sealed
        )
        if total - alive > STALE_SHARE * total:
            self._connection.execute("DELETE FROM segments")
            self._reset(0)
            self.grow()
            self._seal()
        graph_segments.sweep(self._folder, graph_segments.list_segments(self._connection))

    def _open_graph(self) -> Index:
        """Return the graph that grows.

        It is the newest segment if that was sealed when less than half full, else a new graph.
        """
        if self._graph is None:
            newest = max(
                graph_segments.list_segments(self._connection),
                key=lambda segment: segment.last,
                default=None,
            )
            self._extended_segment = (
                newest if newest and newest.vectors < SEGMENT_SPANS // 2 else None
            )
            self._graph = (
                self._load(self._extended_segment)
                if self._extended_segment
                else graph_segments.create_graph(self._spec.dimension)
            )
        return self._graph

    def _load(self, segment: Segment) -> Index:
        """Return the graph of a segment in memory; rebuild it if it was damaged since `repair`."""
        dimension = self._spec.dimension
        try:
            return graph_segments.open_graph(segment, self._folder, dimension, mapped=False)
        except DamagedSegmentError as error:
            self._extended_segment = rebuilt = self._rebuild(segment, str(error))
            return graph_segments.open_graph(rebuilt, self._folder, dimension, mapped=False)

    def _seal(self) -> None:
        if self._graph is None:
            return
        first = self._extended_segment.first if self._extended_segment else self._last_sealed + 1
        graph_segments.seal(
            self._connection,
            self._folder,
            self._graph,
            first,
            self._last_grown,
            replaced=self._extended_segment,
        )
        self._reset(self._last_grown)

    def _iterate_stored(self, first: int, last: int) -> Iterator[tuple[Keys, Codes]]:
        return graph_segments.iterate_stored_vectors(
            self._connection, first, last, self._spec, self._warn_of_damage
        )

    def _warn_of_damage(self, passage: int) -> None:
        self._connection.execute("INSERT OR IGNORE INTO left_out VALUES (?)", (passage,))
        id_, ordinal = self._connection.execute(
            "SELECT id, ordinal FROM passages JOIN documents USING (document) WHERE passage = ? "
            "UNION ALL SELECT NULL, NULL",  # its document may be gone
            (passage,),
        ).fetchone()
        _log.warning(
            "%r passage %s: no graph has it, because its token codes are damaged. "
            "To mend this: hybrid-search verify --index %s --repair",
            id_,
            ordinal,
            self._folder.stem,
        )

    def _select_int(self, query: str, *values: int) -> int:
        return int(self._connection.execute(query, values).fetchone()[0])


def _chunks(vectors: Iterable[tuple[Keys, Codes]]) -> Iterator[tuple[Keys, Codes, int]]:
    """Yield about `ADD_SPANS` keys and codes of whole passages, and the last passage of them."""
    chunk: list[tuple[Keys, Codes]] = []
    for keys, codes in vectors:
        if len(keys):
            chunk.append((keys, codes))
        if sum(len(passage_keys) for passage_keys, _ in chunk) >= ADD_SPANS:
            yield _concatenate(chunk)
            chunk = []
    if chunk:
        yield _concatenate(chunk)


def _concatenate(chunk: list[tuple[Keys, Codes]]) -> tuple[Keys, Codes, int]:
    keys, codes = (np.concatenate(column) for column in zip(*chunk, strict=True))
    return keys, codes, int(graph_segments.passages_of_keys(keys[-1:])[0])
