"""Williams' test: do two measures correlate with gold equally well, where all three were taken on
the same rows?

t = (r12 - r13) sqrt((n - 1)(1 + r23) / (2 (n - 1)/(n - 3) |R| + ((r12 + r13)/2)^2 (1 - r23)^3))
with n - 3 degrees of freedom, where |R| = 1 - r12^2
- r13^2 - r23^2 + 2 r12 r13 r23. E. J. Williams, "The comparison of regression variables", 1959, in
the form of J. H. Steiger, "Tests for comparing elements of a correlation matrix", 1980, equation 7;
Graham and Baldwin, 2014, argue for it where metrics are compared with people.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.quality.correlation import pearson

STEPS = 100_000


def compare(gold: ArrayLike, first: ArrayLike, second: ArrayLike) -> dict[str, float]:
    """Both Pearson correlations with `gold`, their difference, t, and the two-sided p.

    Give ranks, and they are Spearman's.
    """
    size, first_correlation, second_correlation = (
        len(np.asarray(gold)),
        pearson(gold, first),
        pearson(gold, second),
    )
    t = statistic(size, first_correlation, second_correlation, pearson(first, second))
    return {
        "first": first_correlation,
        "second": second_correlation,
        "difference": first_correlation - second_correlation,
        "t": t,
        "p": probability(t, size - 3),
    }


def statistic(n: int, r12: float, r13: float, r23: float) -> float:
    """t for `n` rows; `r12` and `r13` are the correlations with gold, `r23` that of the two
    measures. 0 where the measures are the same.

    Raises ValueError for fewer than 4 rows, which leave no degree of freedom.
    """
    if n < 4:
        raise ValueError(f"{n} rows are too few to compare correlations on: at least 4 are needed")
    if r12 == r13:
        return 0.0
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    spread = 2 * (n - 1) / (n - 3) * determinant + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / spread)


def probability(t: float, freedom: int) -> float:
    """The chance that Student's t is at least as far from 0 as `t`: 2 Gamma((f + 1)/2) / (sqrt(pi)
    Gamma(f/2)) times the integral of cos^(f - 1) from atan(|t| / sqrt(f)) to pi/2, by the
    trapezoidal rule.
    """
    angles = np.linspace(math.atan(abs(t) / math.sqrt(freedom)), math.pi / 2, STEPS)
    heights = np.cos(angles) ** (freedom - 1)
    area = float((heights[1:] + heights[:-1]) @ np.diff(angles)) / 2
    return min(
        1.0,
        2
        * area
        * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
        / math.sqrt(math.pi),
    )
