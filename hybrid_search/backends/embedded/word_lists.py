"""Words by their centroids: a query reads the words near the nearest of them, and no others.

Each word belongs to the centroid of the model's codebook that its stored code refers to, so nothing
is trained, and for each centroid there is a list of its words: an inverted file (Sivic and
Zisserman 2003; Jegou et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.short_codes import Centroids, Counts, Rows
from hybrid_search.text import codebook
from hybrid_search.text.types import Codebook, Floats


@dataclass(frozen=True, slots=True, eq=False)
class WordLists:
    """The words of some passages, centroid by centroid.

    Attributes:
        starts: int32 ``[centroids + 1]``: where the list of each begins, and the last one ends.
        words: int32 ``[words]``: positions of words in their layer.
    """

    starts: Counts
    words: Counts

    @classmethod
    def from_centroids(cls, centroids: Centroids, count: int) -> Self:
        """Return the lists of words, given the centroid of each, of which there are `count`."""
        starts = np.append(0, np.cumsum(np.bincount(centroids, minlength=count)))
        order = np.argsort(centroids, kind="stable")
        return cls(starts.astype(np.int32), order.astype(np.int32))

    @property
    def sizes(self) -> Counts:
        """The number of words of each centroid, int32 ``[centroids]``."""
        return np.diff(self.starts)


def find_nearest(vector: Floats, used: Codebook, sizes: NDArray[np.int64], count: int) -> Rows:
    """Return the nearest centroids whose lists together have at least `count` words.

    Args:
        vector: A unit vector, float32 ``[dimension]``.
        used: The codebook.
        sizes: The number of words of each centroid.
        count: How many words; if there are fewer, all centroids are returned.
    """
    cosines = used.centroids @ codebook.turn(vector[None])[0]
    nearest: Rows = np.argsort(-cosines)
    return nearest[: int(np.searchsorted(np.cumsum(sizes[nearest]), count)) + 1]
