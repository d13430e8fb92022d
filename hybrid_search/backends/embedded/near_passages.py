"""Finds the passages whose words seem nearest to a query: those worth exact scores.

First the words of some lists are compared with the query (`word_lists`), then spans of a few
lengths of the passages with the best words: of all passages, if a filter leaves few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.passage_documents import Numbers, PassageDocuments
from hybrid_search.backends.embedded.word_lists import LEVELS, Index, choose_lists
from hybrid_search.backends.embedded.word_search import WordSearch
from hybrid_search.system import available_cores
from hybrid_search.text.types import Codebook, Floats
from hybrid_search.text.word_vectors import RoughWordQuery

RANK = 30
FEWEST_CANDIDATES, MOST_CANDIDATES, MARGIN = 150, 600, 0.04
"""Proposed are the passages whose score is at most a margin below that of the `RANK`-th best.

They are from the first number to the second: few, if few calls come near the phrase.
"""

FEWEST_COMPARED, MOST_COMPARED, WORD_MARGIN = 600, 2000, 0.16
"""The same of the passages whose spans are compared, by the cosines of their best words.

On calls_sgd the 2000 best by words hold .988 of the exact ten best, the 1000 best .960. With the
margin 1550 are compared on average, and hold .987.
"""

MEASURED_PASSAGES = 35_000
GROWTH, MARGIN_GROWTH = 2, 0.02
"""What ten times `MEASURED_PASSAGES` need: `GROWTH` times the most, margins `MARGIN_GROWTH` larger.

The scores of more passages are off by more: `benchmarks.speed.larger` measures the recall.
"""

LISTED_WORDS, LISTED_SHARE = 80_000, 60
"""How many words are compared first: a 60th of all, if that is more.

With 60,000 recall@10 on calls_sgd is .005 lower.
"""

PARALLEL_WORDS = 100_000
"""How many listed words are compared in threads: fewer are compared as soon without them."""

UNLISTED = 200
"""A filter that leaves n of N passages goes without lists where n * n is at most so many times N.

The fewer are left, the more lists must be read, which have the words of all.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SearchedFiles:
    """The words of each file of an index, and which of its passages are `usable`, bool.

    `counts` are the words of each list in all files, int64 ``[LEVELS * centroids]``, and `bits`
    those of a number of the word codes.
    """

    searches: Sequence[WordSearch]
    usable: Sequence[NDArray[np.bool_]]
    counts: NDArray[np.int64]
    codebook: Codebook
    bits: int

    def __len__(self) -> int:
        """Return the number of passages."""
        return sum(map(len, self.searches))


@dataclass(frozen=True, slots=True)
class Limits:
    """How many passages are proposed, and how far below the best scores they may be."""

    least: int
    most: int
    margin: float


def count_words(searches: Iterable[WordSearch], codebook: Codebook) -> NDArray[np.int64]:
    """Return the number of words of each list, int64 ``[LEVELS * centroids]``."""
    counts = np.zeros(LEVELS * len(codebook.centroids), np.int64)
    for search in searches:
        np.add.at(counts, np.minimum(search.lists.keys, len(counts) - 1), search.lists.counts)
    return counts


def propose(
    files: SearchedFiles,
    vector: Floats,
    least: int,
    least_documents: int,
    documents: PassageDocuments,
) -> Numbers:
    """Return the numbers of the passages that seem nearest to `vector`, in no particular order.

    They are at least `least`, and of `least_documents`, as far as so many are usable and compared.
    """
    query = RoughWordQuery(vector, files.codebook, files.bits)
    usable = sum(int(np.count_nonzero(part)) for part in files.usable)
    with ThreadPoolExecutor(available_cores()) as pool:  # numpy and numkong release Python's lock
        if usable**2 <= UNLISTED * len(files):
            rows = [np.flatnonzero(part) for part in files.usable]
        else:
            rows = _find_by_words(pool, files, query, least, usable)
        map_files = _choose_map(pool, sum(map(len, rows)) > 2 * MOST_COMPARED)
        scores: list[Floats] = list(
            map_files(lambda search, own: search.score_spans(query, own), files.searches, rows)
        )
    passages = np.concatenate(
        [search.file.passages[own] for search, own in zip(files.searches, rows, strict=True)]
    )
    count = count_near(scores, compute_limits(len(files), least))
    return passages[
        select_of_documents(
            scores, count, lambda places: documents.find(passages[places]), least_documents
        )
    ]


def _find_by_words(
    pool: ThreadPoolExecutor,
    files: SearchedFiles,
    query: RoughWordQuery,
    least: int,
    usable: int,
) -> list[Index]:
    """Return the passages with the best words: their positions in each search."""
    limits = compute_word_limits(len(files), least)
    words = int(files.counts.sum())
    count = max(LISTED_WORDS, words // LISTED_SHARE) * len(files) // usable
    if files.codebook.packed is None:  # without centroids no list is nearer than another
        count = words
    while True:
        are_read = choose_lists(query.centroids, files.counts, count)
        rows, cosines = _compare_words(pool, files, query, are_read, count)
        # the nearest words are of too few passages for a long page
        if count >= words or sum(map(len, rows)) >= min(limits.least, usable):
            break
        count *= 4
    best = select_best(cosines, count_near(cosines, limits))
    return [own[positions] for own, positions in zip(rows, best, strict=True)]


def _compare_words(
    pool: ThreadPoolExecutor,
    files: SearchedFiles,
    query: RoughWordQuery,
    are_read: NDArray[np.bool_],
    count: int,
) -> tuple[list[Index], list[Floats]]:
    """Return the passages that have words in some lists, and the cosines of their best."""

    def score(search: WordSearch, usable: NDArray[np.bool_]) -> tuple[Index, Floats]:
        return search.score_words(query, are_read, None if usable.all() else usable)

    map_files = _choose_map(pool, count > PARALLEL_WORDS)
    scored = list(map_files(score, files.searches, files.usable))
    return [rows for rows, _ in scored], [cosines for _, cosines in scored]


def _choose_map(pool: ThreadPoolExecutor, in_threads: bool) -> Callable[..., Iterable[Any]]:
    """Return the map of a pool, or Python's own."""
    return pool.map if in_threads else map


def compute_word_limits(passages: int, least: int) -> Limits:
    """Return of how many passages spans are compared, where at least `least` are proposed."""
    limits = compute_limits(passages, 2 * least)
    share = limits.most / MOST_CANDIDATES
    most = max(round(MOST_COMPARED * share), limits.most)
    added = limits.margin - MARGIN
    return Limits(max(FEWEST_COMPARED, limits.least), most, WORD_MARGIN + added)


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
    find_documents: Callable[[Index], Numbers],
    least_documents: int,
) -> Index:
    """Return the places of the `count` best of all scores, and of the best of further documents.

    There are some of `least_documents`, if so many have a score above -inf. `find_documents`
    returns the documents at places in the joined lists.
    """
    joined = np.concatenate(scores)
    best = select_best([joined], count)[0]
    if len(set(find_documents(best).tolist())) >= least_documents:
        return best
    ranked = np.argsort(-joined, kind="stable")
    _, firsts = np.unique(find_documents(ranked), return_index=True)
    of_documents = ranked[np.sort(firsts)[:least_documents]]
    return np.union1d(best, of_documents[joined[of_documents] > -np.inf])


def select_best(scores: Sequence[Floats], count: int) -> list[Index]:
    """Return the positions of the `count` best scores above -inf, list by list, ascending."""
    joined = np.concatenate(scores)
    best = np.arange(len(joined))
    if count < len(joined):
        best = np.sort(np.argpartition(-joined, count - 1)[:count])
    best = best[joined[best] > -np.inf]
    ends = np.cumsum([len(part) for part in scores])
    parts = np.split(best, np.searchsorted(best, ends[:-1]))
    return [part - (end - len(own)) for part, end, own in zip(parts, ends, scores, strict=True)]
