"""The span leg of a query: which passages are worth exact scores, by the short codes of all."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.backends.embedded.short_code_search import (
    ShortCodeSearch,
    compute_margin,
    count_near,
    select_best,
)
from hybrid_search.backends.embedded.short_codes import WORDS, Rows, ShortCodes
from hybrid_search.backends.short_vectors import ShortQuery
from hybrid_search.backends.types import IndexSpec
from hybrid_search.system import available_cores
from hybrid_search.text.types import Floats

_log = logging.getLogger(__name__)

FEWEST_CANDIDATES, MOST_CANDIDATES = 150, 600
"""How many passages are proposed, at least and at most."""

CANDIDATES_SHARE = 350
"""In a large index at most one passage among so many is proposed, if that is more.

On ten times calls_sgd, 352,690 passages, 1,000 hold .976 of the exact ten best, 600 hold .963.
"""

WIDTH = 5
"""Passages whose words are compared, for each of the most candidates: by the nearest windows."""

SHARE = 40
"""In a large index the words of one passage among so many are compared.

On ten times calls_sgd, 352,690 passages, recall@10 is .968 so; with 3,000 it was .954.
"""

LISTED_WORDS, LISTED_SHARE = 24_000, 90
"""How many words are compared where words are listed by centroids: a 90th of all, if that is more.

They are those of the nearest centroids. The share also bounds the passages whose windows are
compared then.
"""

PARALLEL_WORDS = 100_000
"""How many listed words are compared in threads: fewer are compared as soon without them.

Those of 35,269 passages take as long either way, and a tenth less of the processors without.
"""

LISTED_WIDTH, LISTED_MARGIN = 3, 0.03
"""The windows of which passages are compared then: those that are near by their listed words.

They are at most so many for each of the most candidates, and those whose score may be in the margin
of proposals, which is wider here, as windows count, too. On calls_sgd 900 of 1,800 passages are so
near, and recall@10 is .9891 with either; with a margin .02 narrower it is .987.
"""

WINDOW_SHARE = 0.35
"""What the cosine of the nearest window counts beside that of the nearest word.

On calls_sgd 400 proposed passages of 35,269 hold .983 of the exact ten best with it, .971 without.
"""


@dataclass(frozen=True, slots=True, eq=False)
class NearPassages:
    """Passages that seem near a query: their positions in each search, and their scores."""

    rows: Sequence[Rows]
    scores: Sequence[Floats]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentQuery:
    """A query of all segments: its vectors, and which and how many passages may be proposed.

    Attributes:
        vector: A unit vector, float32 ``[dimension]``.
        shortened: The same in each of `LAYERS`.
        usable: For each search, which of its passages may be proposed, bool ``[passages]``.
        least: How many passages are proposed at least, if there are so many.
        most: How many at most.
        margin: How far below the best scores passages are proposed.
    """

    vector: Floats
    shortened: Sequence[ShortQuery]
    usable: Sequence[NDArray[np.bool_]]
    least: int
    most: int
    margin: float


@dataclass(frozen=True, slots=True, eq=False)
class WordLists:
    """The centroids of an index, the searches that have their lists, and all lists' sizes."""

    centroids: Centroids
    searches: Set[ShortCodeSearch]
    sizes: NDArray[np.int64]


def _add_cosines(by_words: Sequence[Floats], by_windows: Sequence[Floats]) -> list[Floats]:
    """Return the scores by which passages are proposed."""
    return [
        word_cosines + WINDOW_SHARE * window_cosines
        for word_cosines, window_cosines in zip(by_words, by_windows, strict=True)
    ]


def describe_lost_passages(index: str) -> str:
    """Return the warning about a table whose passages are not those that were written."""
    return (
        f"the list of passages of index {index!r} is damaged: some may not be found. "
        f"To mend this: hybrid-search verify --index {index} --repair"
    )


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
        query = SegmentQuery(
            vector,
            short_codes.shorten_query(vector),
            self._find_usable(allowed),
            max(FEWEST_CANDIDATES, least),
            max(MOST_CANDIDATES, len(self) // CANDIDATES_SHARE, least),
            compute_margin(len(self)),
        )
        with ThreadPoolExecutor(available_cores()) as pool:  # the products release Python's lock
            nearest = None
            if self.uses_lists and self._word_lists and allowed is None:
                nearest = self._find_by_lists(pool, query, self._word_lists)
            # lists propose passages by their nearest words, which are too few for a long page
            if nearest is None or sum(map(len, nearest.rows)) < query.least:
                nearest = self._find_by_windows(pool, query)
        count = count_near(nearest.scores, query.margin, query.least, query.most)
        best = select_best(nearest.scores, count)
        proposed = (
            search.codes.passages[rows[positions]]
            for search, rows, positions in zip(
                self._all_searches(), nearest.rows, best, strict=True
            )
        )
        return np.concatenate(list(proposed))

    def _find_usable(self, allowed: Numbers | None) -> list[NDArray[np.bool_]]:
        """Return which passages of each search are neither deleted nor left out by a filter."""
        if allowed is None:
            return self._alive
        return [
            alive & np.isin(search.codes.passages, allowed)
            for search, alive in zip(self._all_searches(), self._alive, strict=True)
        ]

    def _find_by_windows(self, pool: ThreadPoolExecutor, query: SegmentQuery) -> NearPassages:
        """Compare the windows of all passages, then the words of the nearest."""
        searches, shortened = self._all_searches(), query.shortened
        cosines = list(pool.map(lambda search: search.score_all(shortened), searches))
        for window_cosines, is_usable in zip(cosines, query.usable, strict=True):
            window_cosines[~is_usable] = -np.inf
        rows = select_best(cosines, max(WIDTH * query.most, len(self) // SHARE))
        by_words = pool.map(lambda search, own: search.score(shortened, WORDS, own), searches, rows)
        by_windows = [own[own_rows] for own, own_rows in zip(cosines, rows, strict=True)]
        return NearPassages(rows, _add_cosines(list(by_words), by_windows))

    def _find_by_lists(
        self, pool: ThreadPoolExecutor, query: SegmentQuery, word_lists: WordLists
    ) -> NearPassages:
        """Compare the words of the nearest centroids, then the windows of the nearest passages.

        Of passages that are not listed, as those of the tail, all words are compared.

        Returns:
            The passages whose windows were compared.
        """
        searches, shortened = self._all_searches(), query.shortened
        count = max(LISTED_WORDS, int(word_lists.sizes.sum()) // LISTED_SHARE)
        nearest = word_lists.centroids.find_nearest(query.vector, word_lists.sizes, count)
        in_order = np.sort(nearest)  # lists of neighbours lie side by side in memory

        def score_words(search: ShortCodeSearch) -> tuple[Rows, Floats]:
            if search in word_lists.searches:
                return search.score_listed(shortened, in_order)
            rows = np.arange(len(search))
            return rows, search.score(shortened, WORDS, rows)

        map_searches: Callable[..., Iterable[Any]] = pool.map if count > PARALLEL_WORDS else map
        rows, cosines = map(list, zip(*map_searches(score_words, searches), strict=True))
        for own_rows, word_cosines, is_usable in zip(rows, cosines, query.usable, strict=True):
            word_cosines[~is_usable[own_rows]] = -np.inf
        most = max(LISTED_WIDTH * query.most, len(self) // LISTED_SHARE)
        near = count_near(cosines, query.margin + LISTED_MARGIN, query.least, most)
        best = select_best(cosines, near)
        rows = [own[positions] for own, positions in zip(rows, best, strict=True)]
        by_words = [own[positions] for own, positions in zip(cosines, best, strict=True)]
        by_windows = map_searches(
            lambda search, own: search.score(shortened, 0, own), searches, rows
        )
        return NearPassages(rows, _add_cosines(by_words, list(by_windows)))

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
