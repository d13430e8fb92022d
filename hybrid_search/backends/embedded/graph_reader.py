"""The span leg of a reader: every sealed segment memory-mapped, the tail searched exactly."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index, search

from hybrid_search.backends.embedded import graph_segments
from hybrid_search.backends.embedded.graph_segments import Keys, Segment
from hybrid_search.text.token_codes import quantize
from hybrid_search.text.types import Codes, Floats

_log = logging.getLogger(__name__)

OVERSAMPLE = 2
"""How much more than its share of the spans each segment is asked for, because what is alike may
have come in together.
"""

SPANS_A_PASSAGE = 2
"""Spans asked for to find one passage: several of its windows are alike. Asked again, for more, if
that was too few.
"""


class FlatIndex:
    """Covering spans held in memory and compared one by one: the tail, and what a damaged file
    should have held.
    """

    def __init__(self, dimension: int) -> None:
        self._keys: list[Keys] = [np.zeros(0, np.uint64)]
        self._codes: list[Codes] = [np.zeros((0, dimension), np.int8)]
        self.last = 0

    def __len__(self) -> int:
        return sum(map(len, self._keys))

    def extend(self, vectors: Iterable[tuple[Keys, Codes]]) -> None:
        """Take in the keys and codes of some more passages."""
        for keys, codes in vectors:
            self._keys.append(keys)
            self._codes.append(codes)
        self._keys, self._codes = [np.concatenate(self._keys)], [np.concatenate(self._codes)]

    def search(self, query: Codes, count: int) -> tuple[Keys, Floats]:
        """Keys and distances of the `count` nearest spans, nearest first."""
        if not len(self):
            return self._keys[0], np.zeros(0, np.float32)
        matches = search(self._codes[0], query, min(count, len(self)), "cos", exact=True)
        return self._keys[0][matches.keys.astype(np.intp)], matches.distances


class GraphReader:
    """Finds passages by their covering spans.

    `refresh` brings it up to date with what other processes committed.
    """

    def __init__(self, folder: Path, dimension: int, policy: str) -> None:
        self._folder, self._dimension, self._policy = folder, dimension, policy
        self._graphs: dict[Segment, Index | FlatIndex] = {}
        self._tail = FlatIndex(dimension)

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Open segments that are new, let go of those that are gone, and take in the tail."""
        current_segments = graph_segments.list_segments(connection)
        if any(
            segment not in self._graphs and not segment.path(self._folder).is_file()
            for segment in current_segments
        ):
            current_segments = graph_segments.list_segments(
                connection
            )  # swept up by the writer between our reading of its name and of the file
        self._graphs = {
            segment: self._graphs.get(segment) or self._open_segment(connection, segment)
            for segment in current_segments
        }
        sealed = max((segment.last for segment in current_segments), default=0)
        if self._tail.last < sealed:
            self._tail = FlatIndex(self._dimension)
        newest = connection.execute("SELECT coalesce(max(passage), 0) FROM tokens").fetchone()[0]
        since = max(self._tail.last, sealed)
        if newest > since:
            self._tail.extend(
                graph_segments.iterate_stored_vectors(connection, since + 1, newest, self._policy)
            )
        self._tail.last = max(newest, sealed)

    def _open_segment(self, connection: sqlite3.Connection, segment: Segment) -> Index | FlatIndex:
        fault = segment.find_fault(self._folder)
        if fault is None:
            return graph_segments.open_graph(segment, self._folder)
        _log.warning(
            "%s: its %d spans are searched exactly, from the codes, until the next ingest makes it again",
            fault,
            segment.vectors,
        )
        exact = FlatIndex(self._dimension)
        exact.extend(
            graph_segments.iterate_stored_vectors(
                connection, segment.first, segment.last, self._policy
            )
        )
        return exact

    def iterate_passages(self, vector: Floats, window: int) -> Iterator[NDArray[np.int64]]:
        """Passages by their best covering span, in growing lists: the caller takes the first that
        holds enough of what it may use.
        """
        query, total = quantize(vector[None])[0][0], len(self)
        count = window * SPANS_A_PASSAGE
        while count < total:
            yield self._search(query, count)
            count *= SPANS_A_PASSAGE
        yield self._search(query, max(total, 1))

    def _search(self, query: Codes, count: int) -> NDArray[np.int64]:
        if not len(self):
            return np.zeros(0, np.int64)
        graphs = [self._tail, *self._graphs.values()]
        results = [
            _search_graph(
                graph, query, min(count, OVERSAMPLE * count * len(graph) // len(self) + OVERSAMPLE)
            )
            for graph in graphs
            if len(graph)
        ]
        keys, distances = (np.concatenate(column) for column in zip(*results, strict=True))
        passages = graph_segments.passages_of_keys(keys[np.argsort(distances, kind="stable")])
        first = np.unique(passages, return_index=True)[1]
        return passages[np.sort(first)]

    def __len__(self) -> int:
        return sum(map(len, self._graphs.values())) + len(self._tail)

    @property
    def method(self) -> str:
        """How passages are found, for the plan of a result."""
        graphs = sum(isinstance(graph, Index) for graph in self._graphs.values())
        return "exact" if not graphs else f"HNSW in {graphs} segments"


def _search_graph(graph: Index | FlatIndex, query: Codes, count: int) -> tuple[Keys, Floats]:
    if isinstance(graph, FlatIndex):
        return graph.search(query, count)
    matches = graph.search(query, min(count, len(graph)))
    return matches.keys, matches.distances
