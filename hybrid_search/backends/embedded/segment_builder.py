"""Keeps the segments in step with the stored word codes.

The newest segment grows in memory until it is full, and is then sealed; one that is missing or
damaged is made again.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hybrid_search.backends.embedded import centroid_store, centroids, segments, short_codes
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.backends.embedded.short_codes import ShortCodes
from hybrid_search.backends.types import IndexSpec
from hybrid_search.text.types import WordCodes

_log = logging.getLogger(__name__)

SEGMENT_PASSAGES = 8192
"""Passages in a sealed segment: some 70 MB.

Only the newest segment is in this process's own memory.
"""

TAIL_PASSAGES = 500
"""A tail of fewer passages than this gets no segment.

Every process that searches the index makes their short codes for itself, in some 0.2 s.
"""

LISTED_PASSAGES = 16384
"""An index with more passages in its segments than these has lists of words by centroids.

In a smaller one all windows are compared in a few milliseconds.
"""

GROWTH = 4
"""Centroids are trained again if there are so many times the passages that they were trained on."""

STALE_SHARE = 0.5
"""All segments are made again if more than this share of their passages is deleted."""


class SegmentBuilder:
    """Writes the segments in `folder` from the word codes that `connection` reads.

    Only the writer of an index has one.
    """

    def __init__(self, connection: sqlite3.Connection, folder: Path, spec: IndexSpec) -> None:
        self._connection, self._folder, self._spec = connection, folder, spec
        self._centroids = centroid_store.read(connection)
        sealed = (segment.last for segment in segments.list_segments(connection))
        self._reset(max(sealed, default=0))

    def _reset(self, sealed: int) -> None:
        self._last_sealed = self._last_grown = sealed
        self._parts: list[ShortCodes] = []
        """The newest segment: what it goes on from, then one passage each."""
        self._size = 0
        self._extended_segment: Segment | None = None

    def repair(self) -> None:
        """Make every segment again whose file is missing, outdated or damaged.

        Files that a killed writer left behind are deleted.
        """
        segments.check_folder(self._folder)
        stored_segments = segments.list_segments(self._connection)
        segments.find_faults(stored_segments, self._folder)  # all together, on all cores
        for segment in stored_segments:
            try:
                segments.open_segment(segment, self._folder)
                segments.record_change(self._connection, self._folder, segment)
            except DamagedSegmentError as error:
                self._rebuild(segment, str(error))
        segments.sweep(self._folder, segments.list_segments(self._connection))

    def _rebuild(self, segment: Segment, fault: str) -> tuple[Segment, ShortCodes]:
        """Make a segment again, and return it with its short codes."""
        _log.warning(
            "%s: made again from the codes of passages %d to %d", fault, segment.first, segment.last
        )
        stored = self._iterate_stored(segment.first, segment.last)
        parts = [short_codes.shorten(passage, tokens) for passage, tokens in stored]
        codes = short_codes.join([short_codes.empty(), *parts])
        return self._replace(segment, codes), codes

    def _replace(self, segment: Segment, codes: ShortCodes) -> Segment:
        """Write a segment again, and return the new one."""
        codes = self._add_lists(codes)
        return segments.seal(
            self._connection, self._folder, codes, segment.first, segment.last, replaced=segment
        )

    def _add_lists(self, codes: ShortCodes) -> ShortCodes:
        """Return short codes with the lists of the index's centroids, if it has any."""
        if self._centroids is None or not len(codes.passages):
            return codes
        return replace(codes, lists=centroids.list_words(codes, self._centroids))

    def _update_lists(self) -> None:
        """Train the centroids if the index has grown, and list the words of all segments by them.

        A segment whose lists are those of earlier centroids is searched without them meanwhile.
        """
        stored_segments = segments.list_segments(self._connection)
        total = sum(segment.passages for segment in stored_segments)
        if total <= LISTED_PASSAGES:
            return
        if self._centroids is None or total >= GROWTH * self._centroids.passages:
            self._centroids = centroids.train([self._load(old)[1] for old in stored_segments])
            centroid_store.store(self._connection, self._centroids)
            stored_segments = segments.list_segments(self._connection)
        for stored_segment in stored_segments:
            if not self._has_lists(stored_segment, self._centroids.identity):
                self._replace(*self._load(stored_segment))
                segments.sweep(self._folder, segments.list_segments(self._connection))

    def _has_lists(self, segment: Segment, identity: int) -> bool:
        """Return whether a segment has the lists of the centroids with this identity."""
        try:
            lists = segments.open_segment(segment, self._folder).lists
        except DamagedSegmentError:
            return False
        return lists is not None and lists.identity == identity

    def grow(self) -> None:
        """Add the passages committed since the last call; a small tail gets no segment."""
        newest = self._select_int("SELECT coalesce(max(passage), 0) FROM passages")
        if not self._parts and self._count_passages("passage >") < TAIL_PASSAGES:
            return
        for passage, tokens in self._iterate_stored(self._last_grown + 1, newest):
            if not self._parts:
                self._open()
            self._parts.append(short_codes.shorten(passage, tokens))
            self._last_grown, self._size = passage, self._size + 1
            if self._size >= SEGMENT_PASSAGES:
                self._seal()

    def finish(self) -> None:
        """Seal the newest segment; make all again if most of them is of deleted passages."""
        self.grow()
        self._seal()
        total = sum(segment.passages for segment in segments.list_segments(self._connection))
        alive = self._count_passages("passage <=")
        if total - alive > STALE_SHARE * total:
            self._connection.execute("DELETE FROM segments")
            self._reset(0)
            self.grow()
            self._seal()
        self._update_lists()
        segments.sweep(self._folder, segments.list_segments(self._connection))

    def _count_passages(self, condition: str) -> int:
        """Count the passages with words whose numbers are so compared with the last sealed one."""
        query = f"SELECT count(*) FROM passages WHERE spans > 0 AND {condition} ?"
        return self._select_int(query, self._last_sealed)

    def _open(self) -> None:
        """Begin the newest segment: the one sealed last goes on, if it is less than half full."""
        newest = max(
            segments.list_segments(self._connection),
            key=lambda segment: segment.last,
            default=None,
        )
        start = short_codes.empty()
        if newest and newest.passages < SEGMENT_PASSAGES // 2:
            self._extended_segment, start = self._load(newest)
        self._parts, self._size = [start], len(start.passages)

    def _load(self, segment: Segment) -> tuple[Segment, ShortCodes]:
        """Return a segment and its short codes, made again if the file is damaged.

        The file is read for that: what is made of it has a digest of its own, so that damage would
        not be seen later.
        """
        try:
            return segment, segments.open_segment(segment, self._folder, again=True)
        except DamagedSegmentError as error:
            return self._rebuild(segment, str(error))

    def _seal(self) -> None:
        if not self._parts:
            return
        first = self._extended_segment.first if self._extended_segment else self._last_sealed + 1
        segments.seal(
            self._connection,
            self._folder,
            self._add_lists(short_codes.join(self._parts)),
            first,
            self._last_grown,
            replaced=self._extended_segment,
        )
        self._reset(self._last_grown)
        self._update_lists()

    def _iterate_stored(self, first: int, last: int) -> Iterator[tuple[int, WordCodes]]:
        return segments.iterate_word_codes(
            self._connection, first, last, self._spec.dimension, self._warn_of_damage
        )

    def _warn_of_damage(self, passage: int) -> None:
        self._connection.execute("INSERT OR IGNORE INTO left_out VALUES (?)", (passage,))
        id_, ordinal = self._connection.execute(
            "SELECT id, ordinal FROM passages JOIN documents USING (document) WHERE passage = ? "
            "UNION ALL SELECT NULL, NULL",  # its document may be gone
            (passage,),
        ).fetchone()
        _log.warning(
            "%r passage %s: no segment has it, because its word codes are damaged. "
            "To mend this: hybrid-search verify --index %s --repair",
            id_,
            ordinal,
            self._folder.stem,
        )

    def _select_int(self, query: str, *values: int) -> int:
        return int(self._connection.execute(query, values).fetchone()[0])
