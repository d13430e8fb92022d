"""The span leg of a query: which passages are worth exact scores, by the short codes of all."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import commits, schema, segments, short_codes, term_sums
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.backends.embedded.short_code_search import (
    ShortCodeSearch,
    count_near,
    select_best,
)
from hybrid_search.backends.embedded.short_codes import ShortCodes
from hybrid_search.backends.types import IndexSpec
from hybrid_search.system import available_cores
from hybrid_search.text.types import Floats

_log = logging.getLogger(__name__)

FEWEST_CANDIDATES, MOST_CANDIDATES = 150, 600
"""How many passages are proposed, at least and at most."""

WIDTH = 5
"""Passages whose words are compared, for each of the most candidates: by the nearest windows."""

SHARE = 40
"""In a large index the words of one passage among so many are compared.

On ten times calls_sgd, 352,690 passages, recall@10 is .968 so; with 3,000 it was .954.
"""

WINDOW_SHARE = 0.35
"""What the cosine of the nearest window counts beside that of the nearest word.

On calls_sgd 400 proposed passages of 35,269 hold .983 of the exact ten best with it, .971 without.
"""


def describe_lost_passages(index: str) -> str:
    """Return the warning about a table whose passages are not those that were written."""
    return (
        f"the list of passages of index {index!r} is damaged: some may not be found. "
        f"To mend this: hybrid-search verify --index {index} --repair"
    )


class SegmentReader:
    """Finds passages by their short codes: those of the segments, mapped, and of the tail.

    `refresh` brings it up to date with what other processes have committed.
    """

    def __init__(self, folder: Path, spec: IndexSpec) -> None:
        self._folder, self._spec = folder, spec
        self._searches: dict[Segment, ShortCodeSearch] = {}
        self._tail = ShortCodeSearch(short_codes.empty())
        self._tail_first = self._tail_after = 1
        self._alive: list[NDArray[np.bool_]] = []
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
        self._find_alive(connection)

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
                f"{error}: its {segment.passages} passages are read from the token codes. The "
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
        passages = segments.iterate_token_codes(
            connection, first, last, self._spec.dimension, self.damaged.add
        )
        parts = [short_codes.shorten(passage, tokens) for passage, tokens in passages]
        return short_codes.join([short_codes.empty(), *parts])

    def find_passages(self, vector: Floats, least: int, allowed: Numbers | None = None) -> Numbers:
        """Return the passages that seem nearest to `vector`, in no particular order.

        Args:
            vector: A unit vector, float32 ``[dimension]``.
            least: How many at least; there are fewer if the index has fewer.
            allowed: Only these passages, if given.
        """
        least, most = max(FEWEST_CANDIDATES, least), max(MOST_CANDIDATES, least)
        searches = self._all_searches()
        with ThreadPoolExecutor(available_cores()) as pool:  # the products release Python's lock
            by_windows = list(pool.map(lambda search: search.score_all(vector), searches))
            for search, alive, cosines in zip(searches, self._alive, by_windows, strict=True):
                passages = search.codes.passages
                is_usable = alive if allowed is None else alive & np.isin(passages, allowed)
                cosines[~is_usable] = -np.inf
            rows = select_best(by_windows, max(WIDTH * most, len(self) // SHARE))
            by_words = pool.map(lambda search, rows: search.score(vector, 1, rows), searches, rows)
            scores = [
                word_cosines + WINDOW_SHARE * cosines[own_rows]
                for word_cosines, cosines, own_rows in zip(by_words, by_windows, rows, strict=True)
            ]
        best = select_best(scores, count_near(scores, least, most))
        proposed = (
            search.codes.passages[own_rows[positions]]
            for search, own_rows, positions in zip(searches, rows, best, strict=True)
        )
        return np.concatenate(list(proposed))

    def _all_searches(self) -> list[ShortCodeSearch]:
        return [*self._searches.values(), self._tail]

    def __len__(self) -> int:
        """Return the number of passages, deleted ones among them."""
        return sum(map(len, self._all_searches()))

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the files and the list of passages, and the remedy."""
        lost = [] if self._lists_all else [describe_lost_passages(self._folder.stem)]
        return [*self._faults.values(), *lost]

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
