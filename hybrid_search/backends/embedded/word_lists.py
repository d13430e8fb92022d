"""Words by what their stored code says of their direction: a query reads those that may be near it.

Each word is in a list (Sivic and Zisserman 2003; Jegou et al. 2011) with those of the same centroid
in the model's codebook, of which about as much is left to the residual. The product of the phrase
with the centroid says where the words of a list are, and the length of the residual how far from
there they may be: words without a near centroid are in lists of their own, which are read sooner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.joined_words import NO_WORD, Rows
from hybrid_search.text.types import Floats
from hybrid_search.text.word_vectors import RESIDUAL_STEPS

Places = NDArray[np.unsignedinteger]
"""Where rows of words begin, in bytes."""

Index = NDArray[np.intp]

LEVELS = 16
"""Lists of one centroid, by the part of the residual."""

STEPS = 256 // LEVELS
"""Steps of the part of a residual that are one level."""

RESIDUAL_ENERGY = 0.88
"""The squared length of a residual in 2 bits, of which a longer centroid makes up for the rest."""

REACH = 0.4
"""How much of its residual brings a word nearer to the phrase, of those worth reading.

On calls_sgd 80,000 of 2.2 million words hold the best word, or one as good, of .994 of the exact
ten best passages so, of .98 with 0.5, of .95 with 0.2, and of .89 by the centroids alone.
"""


class WordLists:
    """Where the words of a file begin: `places`, list by list, ascending in each.

    The `keys` of the lists ascend: `LEVELS` times the centroid, and the level. `counts` are their
    numbers of words, and `starts` is where each list begins among `places`.
    """

    def __init__(self, keys: NDArray[np.uint32], counts: NDArray[np.int64], places: Places) -> None:
        self.keys, self.counts, self.places = keys, counts, places
        self.starts: NDArray[np.int64] = np.cumsum(counts) - counts

    @classmethod
    def from_words(cls, keys: Iterable[NDArray[np.uint32]], places: Iterable[Index]) -> Self:
        """Return the lists of words, given those of each passage, in order, as `list_words`."""
        joined = np.concatenate([np.zeros(0, np.uint32), *keys])
        places_of_all = np.concatenate([np.zeros(0, np.intp), *places])
        width = np.uint32 if places_of_all.max(initial=0) < 1 << 32 else np.uint64
        order = np.argsort(joined, kind="stable")
        unique, counts = np.unique(joined, return_counts=True)
        return cls(unique, counts, places_of_all[order].astype(width))

    def find(self, are_read: NDArray[np.bool_]) -> Index:
        """Return where the words of some lists begin, ascending; bool ``[keys]`` says which."""
        of_lists = are_read.take(self.keys, mode="clip")
        places = self.places.take(expand(self.starts[of_lists], self.counts[of_lists]))
        places.sort()
        return places.astype(np.intp)


def list_words(rows: Rows) -> tuple[NDArray[np.uint32], Index]:
    """Return the key of each word of a passage that begins a span, and the number of its row."""
    words = np.flatnonzero((rows["count"] != NO_WORD) & (rows["count"] > 0))
    levels = rows["residual_part"][words] // np.uint8(STEPS)
    return rows["centroid"][words] * np.uint32(LEVELS) + levels, words


def choose_lists(
    centroid_products: Floats, counts: NDArray[np.int64], words: int
) -> NDArray[np.bool_]:
    """Return which lists are read: those whose words may be nearest, until they have `words`.

    `centroid_products` are those of the phrase and each centroid, float32 ``[centroids]``, and
    `counts` the words of each list, int64 ``[LEVELS * centroids]``.
    """
    residual_parts = (np.arange(LEVELS, dtype=np.float32) + np.float32(0.5)) * STEPS
    residual_parts /= RESIDUAL_STEPS
    centroid_parts = np.sqrt(np.maximum(1 - RESIDUAL_ENERGY * residual_parts**2, 0))
    nearness = np.outer(centroid_products, centroid_parts) + REACH * residual_parts
    used = np.flatnonzero(counts)
    order = used[np.argsort(-nearness.ravel()[used])]
    are_read = np.zeros(len(counts), np.bool_)
    are_read[order[: int(np.searchsorted(np.cumsum(counts[order]), words)) + 1]] = True
    return are_read


def expand(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> Index:
    """Return the numbers from each start on, as many as its count, one range after the other."""
    ends = np.cumsum(counts, dtype=np.intp)
    shifts = starts.astype(np.intp) - (ends - counts)
    ranges: Index = np.arange(ends[-1] if len(ends) else 0) + np.repeat(shifts, counts)
    return ranges
