"""The span leg of a query: sealed segments are memory-mapped, the tail is searched exactly."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index, search

from hybrid_search.backends.embedded import graph_segments
from hybrid_search.backends.embedded.graph_segments import DamagedSegmentError, Keys, Segment
from hybrid_search.backends.types import IndexSpec
from hybrid_search.text.token_codes import quantize
from hybrid_search.text.types import Codes, Floats

_log = logging.getLogger(__name__)

OVERSAMPLE = 2
"""Each segment returns up to this many times its share of the windows.

Similar passages are often ingested together and then lie in one segment.
"""

SPANS_A_PASSAGE = 2
"""Covering windows requested for each passage wanted: several windows of a passage are alike.

If they were too few, more are requested.
"""


class FlatIndex:
    """Covering windows in memory, compared one by one.

    It holds the tail, or the windows of a segment whose file is damaged.
    """

    def __init__(self, dimension: int) -> None:
        self._keys: list[Keys] = [np.zeros(0, np.uint64)]
        self._codes: list[Codes] = [np.zeros((0, dimension), np.int8)]
        self.last = 0

    def __len__(self) -> int:
        return sum(map(len, self._keys))

    def extend(self, vectors: Iterable[tuple[Keys, Codes]]) -> None:
        """Add the keys and codes of more passages."""
        all_keys, all_codes = [*self._keys], [*self._codes]
        for keys, codes in vectors:
            all_keys.append(keys)
            all_codes.append(codes)
        self._keys, self._codes = [np.concatenate(all_keys)], [np.concatenate(all_codes)]

    def search(self, query: Codes, count: int) -> tuple[Keys, Floats]:
        """Return keys and distances of the `count` nearest windows, nearest first."""
        if not len(self):
            return self._keys[0], np.zeros(0, np.float32)
        matches = search(self._codes[0], query, min(count, len(self)), "cos", exact=True)
        return self._keys[0][matches.keys.astype(np.intp)], matches.distances


class GraphReader:
    """Finds passages by their covering windows.

    `refresh` brings it up to date with what other processes have committed.
    """

    def __init__(self, folder: Path, spec: IndexSpec) -> None:
        self._folder, self._spec = folder, spec
        self._graphs: dict[Segment, Index | FlatIndex] = {}
        self._tail = FlatIndex(spec.dimension)
        self._faults: dict[Segment, str] = {}
        self.damaged: set[int] = set()
        """Passages that cannot be found, because their codes are damaged."""

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Open new segments, close removed ones, and add new passages to the tail."""
        current_segments = graph_segments.list_segments(connection)
        if any(
            segment not in self._graphs and not segment.path(self._folder).is_file()
            for segment in current_segments
        ):
            # The writer deleted a file after we had read its name: read the names again.
            current_segments = graph_segments.list_segments(connection)
        self._open_segments(connection, current_segments)
        sealed = max((segment.last for segment in current_segments), default=0)
        # a new tail: other threads may still search the old one
        self._tail = (
            FlatIndex(self._spec.dimension) if self._tail.last < sealed else copy(self._tail)
        )
        newest = connection.execute("SELECT coalesce(max(passage), 0) FROM tokens").fetchone()[0]
        since = max(self._tail.last, sealed)
        if newest > since:
            self._tail.extend(self._read_vectors(connection, since + 1, newest))
        self._tail.last = max(newest, sealed)

    def _open_segments(self, connection: sqlite3.Connection, segments: Sequence[Segment]) -> None:
        new_segments = [segment for segment in segments if segment not in self._graphs]
        if new_segments:
            graph_segments.find_faults(new_segments, self._folder)  # all together, on all cores
        self._graphs = {
            segment: self._graphs[segment]
            if segment in self._graphs
            else self._open_segment(connection, segment)
            for segment in segments
        }
        self._faults = {
            segment: fault for segment, fault in self._faults.items() if segment in self._graphs
        }

    def _open_segment(self, connection: sqlite3.Connection, segment: Segment) -> Index | FlatIndex:
        try:
            return graph_segments.open_graph(segment, self._folder, self._spec.dimension)
        except DamagedSegmentError as error:
            return self._read_segment(connection, segment, str(error))

    def _read_segment(
        self, connection: sqlite3.Connection, segment: Segment, fault: str
    ) -> FlatIndex:
        """Return the windows of a segment whose file is damaged, and warn of it."""
        self._faults[segment] = (
            f"{fault}: its {segment.vectors} vectors are searched exactly, from the codes. The "
            "next ingest rebuilds it, and so does "
            f"hybrid-search verify --index {self._folder.stem} --repair"
        )
        _log.warning("%s", self._faults[segment])
        exact = FlatIndex(self._spec.dimension)
        exact.extend(self._read_vectors(connection, segment.first, segment.last))
        return exact

    def _read_vectors(
        self, connection: sqlite3.Connection, first: int, last: int
    ) -> Iterator[tuple[Keys, Codes]]:
        return graph_segments.iterate_stored_vectors(
            connection, first, last, self._spec, self.damaged.add
        )

    def iterate_passages(
        self, connection: sqlite3.Connection, vector: Floats, window: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield growing lists of passages, ordered by their best covering window.

        The caller takes the first list that has enough passages for it.
        """
        query, total = quantize(vector[None])[0][0], len(self)
        count = window * SPANS_A_PASSAGE
        while count < total:
            yield self._search(connection, query, count)
            count *= SPANS_A_PASSAGE
        yield self._search(connection, query, max(total, 1))

    def _search(
        self, connection: sqlite3.Connection, query: Codes, count: int
    ) -> NDArray[np.int64]:
        total = len(self)
        if not total:
            return np.zeros(0, np.int64)
        shares = {
            segment: OVERSAMPLE * count * len(graph) // total + OVERSAMPLE
            for segment, graph in self._graphs.items()
            if len(graph)
        }
        tail_share = OVERSAMPLE * count * len(self._tail) // total + OVERSAMPLE
        results = [self._tail.search(query, min(count, tail_share))]
        for segment, share in shares.items():
            results.append(self._search_segment(connection, segment, query, min(count, share)))
        keys, distances = (np.concatenate(column) for column in zip(*results, strict=True))
        passages = graph_segments.passages_of_keys(keys[np.argsort(distances, kind="stable")])
        first = np.unique(passages, return_index=True)[1]
        return passages[np.sort(first)]

    def _search_segment(
        self, connection: sqlite3.Connection, segment: Segment, query: Codes, count: int
    ) -> tuple[Keys, Floats]:
        graph = self._graphs[segment]
        if isinstance(graph, FlatIndex):
            return graph.search(query, count)
        try:
            matches = graph.search(query, min(count, len(graph)))
        except graph_segments.LIBRARY_ERRORS as error:
            fault = f"{segment.path(self._folder)} cannot be searched ({error})"
            exact = self._read_segment(connection, segment, fault)
            self._graphs[segment] = exact
            return exact.search(query, count)
        return matches.keys, matches.distances

    def __len__(self) -> int:
        return sum(map(len, self._graphs.values())) + len(self._tail)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the files, what is done instead, and the remedy."""
        return list(self._faults.values())

    @property
    def method(self) -> str:
        """How passages are found, in words, for the plan of a result."""
        graphs = sum(isinstance(graph, Index) for graph in self._graphs.values())
        return "exact" if not graphs else f"HNSW in {graphs} segments"


class SharedGraphReader:
    """The graphs of an index for several threads; what one has read of them, all use."""

    def __init__(self, folder: Path, spec: IndexSpec) -> None:
        self._latest = GraphReader(folder, spec)
        self._lock = threading.Lock()

    def refresh(self, connection: sqlite3.Connection) -> GraphReader:
        """Return the graphs as they are now; they stay so for the thread that gets them."""
        with self._lock:
            current = copy(self._latest)
            current.refresh(connection)
            self._latest = current
            return current
