"""Find the passages whose short codes are nearest to a query: those worth exact scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.passage_documents import Numbers, PassageDocuments
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import WORDS, Rows, shorten_query
from hybrid_search.backends.embedded.word_lists import WordLists, find_nearest
from hybrid_search.system import available_cores
from hybrid_search.text.types import Codebook, Floats

RANK = 30
FEWEST_CANDIDATES, MOST_CANDIDATES, MARGIN = 150, 600, 0.07
"""Proposed are the passages whose score is at most a margin below that of the `RANK`-th best.

For a phrase that few calls come near they are few. There are at least and at most so many.
"""

MEASURED_PASSAGES = 35_000
GROWTH, MARGIN_GROWTH = 2, 0.02
"""What more than `MEASURED_PASSAGES` need: the most and the margin grow for ten times as many.

The most is `GROWTH` times as large, and the margin `MARGIN_GROWTH` larger, as the scores of more
passages are off by more. `benchmarks.speed.larger` measures recall on ten times as many.
"""

WIDTH = 5
"""Passages whose words are compared, for each of the most candidates: by the nearest windows."""

SHARE = 40
"""In a large index the words of one passage among so many are compared.

On ten times calls_sgd, 352,690 passages, recall@10 is .968 so; with 3,000 it was .954.
"""

LISTED_WORDS, LISTED_SHARE = 36_000, 60
"""How many words are compared where words are listed by centroids: a 60th of all, if that is more.

They are those of the nearest centroids. The share also bounds the passages whose windows are
compared then. Of 2,127 passages of calls_sgd a 60th of the words reaches all of the exact ten best,
and recall@10 is .990, as with all windows; with a 90th it is .984.
"""

PARALLEL_WORDS = 100_000
"""How many listed words are compared in threads: fewer are compared as soon without them.

Those of 35,269 passages take as long either way, and a tenth less of the processors without.
"""

LISTED_WIDTH, LISTED_MARGIN = 3, 0.03
"""The windows of which passages are compared then: those that are near by their listed words.

They are at most so many for each of the most candidates, and those whose score may be in the margin
of proposals, which is wider here, as windows count, too.
"""

WINDOW_SHARE = 0.35
"""What the cosine of the nearest window counts beside that of the nearest word.

On calls_sgd 400 proposed passages of 35,269 hold .983 of the exact ten best with it, .971 without.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SearchedFiles:
    """The short codes of an index, and which of its passages may be proposed.

    Attributes:
        searches: Those of each file.
        usable: For each of them, which passages may be proposed, bool ``[passages]``.
        codebook: The centroids by which words are listed; None if all windows are compared.
    """

    searches: Sequence[ShortCodeSearch]
    usable: Sequence[NDArray[np.bool_]]
    codebook: Codebook | None

    def __len__(self) -> int:
        """Return the number of passages."""
        return sum(map(len, self.searches))


@dataclass(frozen=True, slots=True)
class Limits:
    """How many passages are proposed, and how far below the best scores they may be."""

    least: int
    most: int
    margin: float


@dataclass(frozen=True, slots=True, eq=False)
class NearPassages:
    """Passages that seem near a query: their positions in each search, and their scores."""

    rows: Sequence[Rows]
    scores: Sequence[Floats]


def propose(
    files: SearchedFiles,
    vector: Floats,
    least: int,
    least_documents: int,
    documents: PassageDocuments,
) -> Numbers:
    """Return the numbers of the passages that seem nearest to `vector`, in no particular order.

    Args:
        files: Where to look.
        vector: A unit vector, float32 ``[dimension]``.
        least: How many at least; there are fewer if fewer are usable.
        least_documents: Of how many documents at least, as far as so many are compared.
        documents: Which passage is of which document.
    """
    limits = compute_limits(len(files), least)
    with ThreadPoolExecutor(available_cores()) as pool:  # the products release Python's lock
        nearest = None
        if files.codebook is not None:
            nearest = _find_by_lists(pool, files, files.codebook, vector, limits)
        # lists propose passages by their nearest words, which are too few for a long page
        if nearest is None or sum(map(len, nearest.rows)) < limits.least:
            nearest = _find_by_windows(pool, files, vector, limits)
    passages = np.concatenate(
        [
            search.codes.passages[rows]
            for search, rows in zip(files.searches, nearest.rows, strict=True)
        ]
    )
    count = count_near(nearest.scores, limits)
    return passages[
        select_of_documents(
            nearest.scores, count, lambda places: documents.find(passages[places]), least_documents
        )
    ]


def _find_by_windows(
    pool: ThreadPoolExecutor, files: SearchedFiles, vector: Floats, limits: Limits
) -> NearPassages:
    """Compare the windows of all passages, then the words of the nearest."""
    searches, query = files.searches, shorten_query(vector)
    # with one file a thread has nobody to work beside
    map_searches = _choose_map(pool, sum(map(bool, searches)) > 1)
    cosines = list(map_searches(lambda search: search.score_all(query), searches))
    for window_cosines, is_usable in zip(cosines, files.usable, strict=True):
        window_cosines[~is_usable] = -np.inf
    rows = select_best(cosines, max(WIDTH * limits.most, len(files) // SHARE))
    by_words = map_searches(lambda search, own: search.score(query, WORDS, own), searches, rows)
    by_windows = [own[own_rows] for own, own_rows in zip(cosines, rows, strict=True)]
    return NearPassages(rows, _add_cosines(list(by_words), by_windows))


def _find_by_lists(
    pool: ThreadPoolExecutor,
    files: SearchedFiles,
    codebook: Codebook,
    vector: Floats,
    limits: Limits,
) -> NearPassages:
    """Compare the words of the nearest centroids, then the windows of the nearest passages.

    Returns:
        The passages whose windows were compared.
    """
    searches, query = files.searches, shorten_query(vector)
    lists = [search.list_words(len(codebook.centroids)) for search in searches]
    sizes: Numbers = np.stack([own.sizes for own in lists]).sum(axis=0, dtype=np.int64)
    count = max(LISTED_WORDS, int(sizes.sum()) // LISTED_SHARE)
    nearest = find_nearest(vector, codebook, sizes, count)
    in_order = np.sort(nearest)  # lists of neighbours lie side by side in memory

    def score_words(search: ShortCodeSearch, own: WordLists) -> tuple[Rows, Floats]:
        return search.score_listed(query, own, in_order)

    map_searches = _choose_map(pool, count > PARALLEL_WORDS)
    rows, cosines = map(list, zip(*map_searches(score_words, searches, lists), strict=True))
    for own_rows, word_cosines, is_usable in zip(rows, cosines, files.usable, strict=True):
        word_cosines[~is_usable[own_rows]] = -np.inf
    most = max(LISTED_WIDTH * limits.most, len(files) // LISTED_SHARE)
    listed_limits = Limits(limits.least, most, limits.margin + LISTED_MARGIN)
    best = select_best(cosines, count_near(cosines, listed_limits))
    rows = [own[positions] for own, positions in zip(rows, best, strict=True)]
    by_words = [own[positions] for own, positions in zip(cosines, best, strict=True)]
    by_windows = map_searches(lambda search, own: search.score(query, 0, own), searches, rows)
    return NearPassages(rows, _add_cosines(by_words, list(by_windows)))


def _choose_map(pool: ThreadPoolExecutor, in_threads: bool) -> Callable[..., Iterable[Any]]:
    """Return the map of a pool, or Python's own."""
    return pool.map if in_threads else map


def _add_cosines(by_words: Sequence[Floats], by_windows: Sequence[Floats]) -> list[Floats]:
    """Return the scores by which passages are proposed."""
    return [
        word_cosines + WINDOW_SHARE * window_cosines
        for word_cosines, window_cosines in zip(by_words, by_windows, strict=True)
    ]


def compute_limits(passages: int, least: int) -> Limits:
    """Return how many passages are proposed, of so many in all: at least `least`."""
    tenfold = log10(max(1.0, passages / MEASURED_PASSAGES))
    most = round(MOST_CANDIDATES * GROWTH**tenfold)
    margin = MARGIN + MARGIN_GROWTH * tenfold
    return Limits(max(FEWEST_CANDIDATES, least), max(most, least), margin)


def count_near(scores: Sequence[Floats], limits: Limits) -> int:
    """Return how many passages are near enough, of those that have these scores."""
    joined = np.concatenate(scores)
    if len(joined) < RANK:
        return limits.least
    lowest = np.partition(joined, -RANK)[-RANK] - limits.margin
    near = int(np.count_nonzero(joined >= lowest))
    return min(max(near, limits.least), limits.most)


def select_of_documents(
    scores: Sequence[Floats],
    count: int,
    find_documents: Callable[[Rows], Numbers],
    least_documents: int,
) -> Rows:
    """Return the places of the `count` best scores among all, and of the best of further documents.

    Args:
        scores: Some lists of scores; those of -inf are left out.
        count: How many of the best are taken, from whatever documents.
        find_documents: Returns the document of each score at places in the joined lists.
        least_documents: Of how many documents there are some at least, if there are so many.
    """
    joined = np.concatenate(scores)
    best = select_best([joined], count)[0]
    if len(set(find_documents(best).tolist())) >= least_documents:
        return best
    ranked = np.argsort(-joined, kind="stable")
    _, firsts = np.unique(find_documents(ranked), return_index=True)
    of_documents = ranked[np.sort(firsts)[:least_documents]]
    return np.union1d(best, of_documents[joined[of_documents] > -np.inf])


def select_best(scores: Sequence[Floats], count: int) -> list[Rows]:
    """Return the positions of the `count` best of all scores, list by list, ascending.

    Scores of -inf are never among them.
    """
    joined = np.concatenate(scores)
    best = np.arange(len(joined))
    if count < len(joined):
        best = np.sort(np.argpartition(-joined, count - 1)[:count])
    best = best[joined[best] > -np.inf]
    ends = np.cumsum([len(part) for part in scores])
    parts = np.split(best, np.searchsorted(best, ends[:-1]))
    return [part - (end - len(own)) for part, end, own in zip(parts, ends, scores, strict=True)]
