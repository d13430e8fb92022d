"""Keeps the nearest-neighbour graphs in step with the codes: grows the newest, seals it when it is full, makes lost ones again."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from usearch.index import Index

from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.embedded import segments
from hybrid_search.backends.embedded.segments import Keys, Segment
from hybrid_search.types import Codes

_log = logging.getLogger(__name__)

SEGMENT_SPANS = 100_000
"""Spans in a sealed segment: about 55 MB at 384 dimensions. Only the newest one is in this process's own memory."""

EXACT_SPANS = 20_000
"""So many spans are compared one by one in about 2 ms: no graph is made for a tail of fewer."""

STALE_SHARE = 0.5
"""When more than this share of the graphs' spans belongs to passages that are gone, all graphs are made anew."""

ADD_SPANS = 4096
"""Spans handed to the graph at once, so that it can use all cores."""


class Grower:
    """Grows the graphs in `folder` from the codes that `connection` sees. Used by the one writer of an index."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, spec: IndexSpec) -> None:
        self._connection, self._folder, self._spec = connection, folder, spec
        self._begin(max((segment.last for segment in segments.listed(connection)), default=0))

    def _begin(self, sealed: int) -> None:
        self._sealed = self._grown = sealed
        self._graph: Index | None = None
        self._extended: Segment | None = None

    def repair(self) -> None:
        """Make again every segment whose file is missing, older, newer or damaged, and sweep up what a killed writer left."""
        for segment in segments.listed(self._connection):
            if fault := segment.fault(self._folder):
                _log.warning("%s: made again from the codes of passages %d to %d", fault, segment.first, segment.last)
                graph = segments.empty(self._spec.dimension)
                for keys, codes, _ in _chunks(self._stored(segment.first, segment.last)):
                    graph.add(keys, codes)
                segments.seal(self._connection, self._folder, graph, segment.first, segment.last, replaced=segment)
        segments.sweep(self._folder, segments.listed(self._connection))

    def grow(self) -> None:
        """Take in what was committed since the last call. A small tail is left as it is."""
        newest = self._one("SELECT coalesce(max(passage), 0) FROM passages")
        if self._graph is None and self._one("SELECT coalesce(sum(spans), 0) FROM passages WHERE passage > ?", self._sealed) < EXACT_SPANS:
            return
        for keys, codes, last in _chunks(self._stored(self._grown + 1, newest)):
            graph = self._open()
            graph.add(keys, codes)
            self._grown = last
            if len(graph) >= SEGMENT_SPANS:
                self._seal()

    def finish(self) -> None:
        """Seal what has been grown; start over if most of the graphs' spans are of passages that are gone."""
        self.grow()
        self._seal()
        held = sum(segment.vectors for segment in segments.listed(self._connection))
        alive = self._one("SELECT coalesce(sum(spans), 0) FROM passages WHERE passage <= ?", self._sealed)
        if held - alive > STALE_SHARE * held:
            self._connection.execute("DELETE FROM segments")
            self._begin(0)
            self.grow()
            self._seal()
        segments.sweep(self._folder, segments.listed(self._connection))

    def _open(self) -> Index:
        """The graph that grows: the newest segment once more where it was sealed before it was full, else a new one."""
        if self._graph is None:
            newest = max(segments.listed(self._connection), key=lambda segment: segment.last, default=None)
            self._extended = newest if newest and newest.vectors < SEGMENT_SPANS // 2 else None
            path = self._extended.path(self._folder) if self._extended else None
            self._graph = Index.restore(str(path), view=False) if path else segments.empty(self._spec.dimension)
        return self._graph

    def _seal(self) -> None:
        if self._graph is None:
            return
        first = self._extended.first if self._extended else self._sealed + 1
        segments.seal(self._connection, self._folder, self._graph, first, self._grown, replaced=self._extended)
        self._begin(self._grown)

    def _stored(self, first: int, last: int) -> Iterator[tuple[Keys, Codes]]:
        return segments.stored(self._connection, first, last, self._spec.policy)

    def _one(self, query: str, *values: int) -> int:
        return int(self._connection.execute(query, values).fetchone()[0])


def _chunks(found: Iterable[tuple[Keys, Codes]]) -> Iterator[tuple[Keys, Codes, int]]:
    """Keys and codes of whole passages, some `ADD_SPANS` at a time, and the last passage in them."""
    held: list[tuple[Keys, Codes]] = []
    for keys, codes in found:
        if len(keys):
            held.append((keys, codes))
        if sum(len(each) for each, _ in held) >= ADD_SPANS:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Keys, Codes]]) -> tuple[Keys, Codes, int]:
    keys, codes = (np.concatenate(column) for column in zip(*held, strict=True))
    return keys, codes, int(segments.passages_of(keys[-1:])[0])
