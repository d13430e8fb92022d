"""The segments of an index, kept up to date with what other processes write, and searched."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import (
    centroid_store,
    commits,
    schema,
    segments,
    short_codes,
    term_sums,
)
from hybrid_search.backends.embedded.centroids import Centroids
from hybrid_search.backends.embedded.near_passages import SearchedSegments, WordLists, propose
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.backends.embedded.passage_documents import PassageDocuments
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import ShortCodes
from hybrid_search.backends.types import IndexSpec
from hybrid_search.text.types import Floats

_log = logging.getLogger(__name__)


def describe_lost_passages(index: str) -> str:
    """Log and return the warning about a table whose passages are not those that were written."""
    warning = (
        f"the list of passages of index {index!r} is damaged: some may not be found. "
        f"To mend this: hybrid-search verify --index {index} --repair"
    )
    _log.warning("%s", warning)
    return warning


def describe_damaged_centroids(index: str) -> str:
    """Return the warning about centroids that are not those that were written."""
    return (
        f"the centroids of index {index!r} are damaged: the windows of all passages are compared, "
        "which takes longer. The next ingest makes them again, and so does "
        f"hybrid-search verify --index {index} --repair"
    )


class SegmentReader:
    """Finds passages by their short codes: those of the segments, mapped, and of the tail.

    `refresh` brings it up to date with what other processes have committed.
    """

    uses_lists = True
    """Whether inverted lists are used where there are any; without them a query takes longer."""

    def __init__(self, folder: Path, spec: IndexSpec) -> None:
        self._folder, self._spec = folder, spec
        self._searches: dict[Segment, ShortCodeSearch] = {}
        self._tail = ShortCodeSearch(short_codes.empty())
        self._tail_first = self._tail_after = 1
        self._alive: list[NDArray[np.bool_]] = []
        self._centroids: Centroids | None = None
        self._identity: int | None = None
        self._word_lists: WordLists | None = None
        self._state: object = None
        self._faults: dict[Segment, str] = {}
        self.damaged: set[int] = set()
        """Passages that cannot be found, because their codes are damaged."""
        self._lists_all = True

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Open new segments, close removed ones, and add new passages to the tail."""
        current_segments = segments.list_segments(connection)
        if any(
            segment not in self._searches and not segment.path(self._folder).is_file()
            for segment in current_segments
        ):
            # The writer deleted a file after we had read its name: read the names again.
            current_segments = segments.list_segments(connection)
        self._open_segments(connection, current_segments)
        sealed = max((segment.last for segment in current_segments), default=0)
        newest = connection.execute("SELECT coalesce(max(passage), 0) FROM tokens").fetchone()[0]
        self._extend_tail(connection, sealed, newest)
        self._read_centroids(connection)
        self._find_alive(connection)

    def _read_centroids(self, connection: sqlite3.Connection) -> None:
        """Read the centroids if they changed, and find the segments that have their lists."""
        identity = centroid_store.read_identity(connection)
        if identity != self._identity:
            self._centroids, self._word_lists = centroid_store.read(connection), None
            self._identity = identity
        searches = frozenset(
            search
            for search in self._searches.values()
            if self._centroids and search.has_lists(self._centroids.identity)
        )
        if self._word_lists and self._word_lists.searches == searches:
            return
        self._word_lists = None
        listed_passages = sum(map(len, searches))
        if self._centroids and 2 * listed_passages > len(self):
            sizes = np.stack([search.list_sizes() for search in searches]).sum(axis=0)
            self._word_lists = WordLists(self._centroids, searches, sizes)

    def _find_alive(self, connection: sqlite3.Connection) -> None:
        """Find out which passages have not been deleted, if that may have changed."""
        with schema.read_transaction(connection):
            searches = self._all_searches()
            state = (commits.read_count(connection), searches)
            if state == self._state:
                return
            query = "SELECT group_concat(passage) FROM passages"
            alive = read_numbers(connection, query)
            self._lists_all = term_sums.has_all_passages(connection, alive)
            self._alive = [np.isin(search.codes.passages, alive) for search in searches]
            self._state = state

    def _open_segments(
        self, connection: sqlite3.Connection, current_segments: Sequence[Segment]
    ) -> None:
        new_segments = [segment for segment in current_segments if segment not in self._searches]
        if new_segments:
            segments.find_faults(new_segments, self._folder)  # all together, on all cores
        self._searches = {
            segment: self._searches[segment]
            if segment in self._searches
            else ShortCodeSearch(self._open_segment(connection, segment))
            for segment in current_segments
        }
        self._faults = {
            segment: fault for segment, fault in self._faults.items() if segment in self._searches
        }

    def _open_segment(self, connection: sqlite3.Connection, segment: Segment) -> ShortCodes:
        """Return the short codes of a segment; if its file is damaged, make them and warn."""
        try:
            return segments.open_segment(segment, self._folder)
        except DamagedSegmentError as error:
            self._faults[segment] = (
                f"{error}: its {segment.passages} passages are read from the word codes. The "
                "next ingest makes it again, and so does "
                f"hybrid-search verify --index {self._folder.stem} --repair"
            )
            _log.warning("%s", self._faults[segment])
            return self._shorten_stored(connection, segment.first, segment.last)

    def _extend_tail(self, connection: sqlite3.Connection, sealed: int, newest: int) -> None:
        """Make a new tail if there are new passages; other threads may still search the old one."""
        start, first = self._tail.codes, self._tail_after
        if self._tail_first != sealed + 1:  # a segment has part of the tail
            start, first = short_codes.empty(), sealed + 1
        if newest >= first or start is not self._tail.codes:
            codes = self._shorten_stored(connection, first, newest)
            self._tail = ShortCodeSearch(short_codes.join([start, codes]))
        self._tail_first, self._tail_after = sealed + 1, max(newest, sealed) + 1

    def _shorten_stored(self, connection: sqlite3.Connection, first: int, last: int) -> ShortCodes:
        """Return the short codes of the passages `first` to `last`."""
        passages = segments.iterate_word_codes(
            connection, first, last, self._spec.dimension, self.damaged.add
        )
        parts = [short_codes.shorten(passage, tokens) for passage, tokens in passages]
        return short_codes.join([short_codes.empty(), *parts])

    def find_passages(
        self,
        vector: Floats,
        least: int,
        least_documents: int,
        documents: PassageDocuments,
        allowed: Numbers | None = None,
    ) -> Numbers:
        """Return the passages that seem nearest to `vector`, see `near_passages.propose`.

        With `allowed` only these passages are returned.
        """
        word_lists = self._word_lists if self.uses_lists and allowed is None else None
        usable = self._find_usable(allowed)
        segments = SearchedSegments(self._all_searches(), usable, word_lists)
        return propose(segments, vector, least, least_documents, documents)

    def list_passages(self, allowed: Numbers | None) -> Numbers:
        """Return the passages that can be found, of those `allowed` if these are given."""
        usable = zip(self._all_searches(), self._find_usable(allowed), strict=True)
        return np.concatenate([search.codes.passages[is_usable] for search, is_usable in usable])

    def _find_usable(self, allowed: Numbers | None) -> list[NDArray[np.bool_]]:
        """Return which passages of each search are neither deleted nor left out by a filter."""
        if allowed is None:
            return self._alive
        return [
            alive & np.isin(search.codes.passages, allowed)
            for search, alive in zip(self._all_searches(), self._alive, strict=True)
        ]

    def _all_searches(self) -> list[ShortCodeSearch]:
        return [*self._searches.values(), self._tail]

    def __len__(self) -> int:
        """Return the number of passages, deleted ones among them."""
        return sum(map(len, self._all_searches()))

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the files, the list of passages and the centroids, and the remedy."""
        index = self._folder.stem
        lost = [] if self._lists_all else [describe_lost_passages(index)]
        are_damaged = self._identity is not None and self._centroids is None
        damaged = [describe_damaged_centroids(index)] if are_damaged else []
        return [*self._faults.values(), *lost, *damaged]

    @property
    def method(self) -> str:
        """How passages are found, in words, for the plan of a result."""
        return f"short codes in {len(self._searches) - len(self._faults)} segments"


class SharedSegmentReader:
    """The segments of an index for several threads; what one has read of them, all use."""

    def __init__(self, folder: Path, spec: IndexSpec) -> None:
        self._latest = SegmentReader(folder, spec)
        self._lock = threading.Lock()

    def refresh(self, connection: sqlite3.Connection) -> SegmentReader:
        """Return the segments as they are now; they stay so for the thread that gets them."""
        with self._lock:
            current = copy(self._latest)
            current.refresh(connection)
            self._latest = current
            return current
