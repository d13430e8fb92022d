"""How alike two phrases are by their contexts (section 3.3 of the paper).

Distances are 1 - cosine. A context of one phrase is compared with the closest context of the other,
and with the closest other context of its own phrase. Their difference is near 0 where the two
phrases are used alike. The similarity is the integral of the distribution function F of all
differences, of either phrase's contexts. The paper takes a histogram's sums between 0 and 1; here
it is exact: each difference x adds 1/n to F(t) for all t > x, so that the integral of F over [low,
high] is the mean of ``high - clip(x, low, high)``. With the paper's range this lies in [0, 1]. Its
footnote speaks of [0, 0.25], which its formula does not give, for then the mean difference would be
above 0.75.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.systems import normalize_rows
from hybrid_search.text.types import Floats

LOW, HIGH = 0.0, 1.0
"""The paper's range; below `LOW` all differences count alike."""


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """The contexts of a phrase as unit vectors, with the distance of each to the closest other.

    `vectors` float32 ``[contexts, dimension]``, `closest` ``[contexts]``. A single context has no
    other, and 0 stands for that distance: as far as from itself. So the similarity of two phrases
    with one context each is the cosine of the two, and a phrase with one is less alike to any than
    it would be with more.
    """

    vectors: Floats
    closest: Floats

    @classmethod
    def from_vectors(cls, vectors: Floats) -> Self:
        """Return the cloud of vectors of any length, at least one."""
        unit_vectors = normalize_rows(vectors.astype(np.float32))
        if len(unit_vectors) == 1:
            return cls(unit_vectors, np.zeros(1, dtype=np.float32))
        distances = 1 - unit_vectors @ unit_vectors.T
        np.fill_diagonal(distances, np.inf)
        return cls(unit_vectors, distances.min(axis=1))

    def __len__(self) -> int:
        return len(self.vectors)


Similarity = Callable[[Cloud, Cloud], float]


def differences(a: Cloud, b: Cloud) -> NDArray[np.float64]:
    """Return the paper's delta of each context of `a` and then of `b`.

    float64 ``[contexts of a + contexts of b]``.
    """
    across = 1 - a.vectors @ b.vectors.T
    return np.concatenate([across.min(axis=1) - a.closest, across.min(axis=0) - b.closest]).astype(
        np.float64
    )


def mcphrasy(a: Cloud, b: Cloud, low: float = LOW, high: float = HIGH) -> float:
    """Return the integral of the differences' distribution function over [low, high].

    From 0 to ``high - low``; higher is more alike.
    """
    return high - float(differences(a, b).clip(low, high).mean())


def average(a: Cloud, b: Cloud) -> float:
    """Return the naive similarity: the cosine of the two mean vectors, 0 if one of them is zero."""
    first, second = normalize_rows(np.stack([a.vectors.mean(axis=0), b.vectors.mean(axis=0)]))
    return float(first @ second)
