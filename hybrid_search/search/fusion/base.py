"""What a fusion is given, and the one definition of alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.search.calibration import Calibration

Scores = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Legs:
    """The two legs of one query over the same passages; nothing is missing, because both scores of
    every passage are known.

    `bm25` float64 ``[n]``, 0 where no term matches; `cosine` float64 ``[n]`` in -1..1. Ranks int64
    ``[n]`` from 1, 0 beyond the leg's window. `terms` is the phrase's number of distinct terms.
    """

    bm25: Scores
    cosine: Scores
    bm25_rank: Ranks
    cosine_rank: Ranks
    terms: int
    calibration: Calibration


def weigh(alpha: float, bm25: Scores, cosine: Scores) -> Scores:
    """The convex combination: `alpha` is the weight of the span cosine. 1 is spans only, 0 is BM25
    only.
    """
    return alpha * cosine + (1.0 - alpha) * bm25
