"""Williams' test: do two measures, taken on the same rows, correlate with gold equally well?

With r12 and r13 the correlations of the measures with gold, r23 that between them, and n rows,

    t = (r12 - r13) sqrt((n - 1)(1 + r23) / (2 (n - 1)/(n - 3) |R| + ((r12 + r13)/2)^2 (1 - r23)^3))

has n - 3 degrees of freedom, where |R| = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23.

E. J. Williams, "The comparison of regression variables", 1959, in the form of J. H. Steiger, "Tests
for comparing elements of a correlation matrix", 1980, equation 7. Graham and Baldwin, 2014, argue
for it where metrics are compared with human judgements. scipy has no such test, only Student's t.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.quality.correlation import pearson


def compare(gold: ArrayLike, first: ArrayLike, second: ArrayLike) -> dict[str, float]:
    """Return both Pearson correlations with `gold`, their difference, t, and the two-sided p.

    Of ranks, the correlations are Spearman's.
    """
    rows = len(np.asarray(gold))
    first_correlation, second_correlation = pearson(gold, first), pearson(gold, second)
    t = statistic(rows, first_correlation, second_correlation, pearson(first, second))
    return {
        "first": first_correlation,
        "second": second_correlation,
        "difference": first_correlation - second_correlation,
        "t": t,
        "p": probability(t, rows - 3),
    }


def statistic(n: int, r12: float, r13: float, r23: float) -> float:
    """Return t for `n` rows; 0 where both measures correlate with gold equally.

    Args:
        n: Number of rows.
        r12: Correlation of the first measure with gold.
        r13: Correlation of the second measure with gold.
        r23: Correlation of the two measures.

    Raises:
        ValueError: If there are fewer than 4 rows, which leave no degree of freedom.
    """
    if n < 4:
        raise ValueError(f"{n} rows are too few to compare correlations on: at least 4 are needed")
    if r12 == r13:
        return 0.0
    squares = r12**2 + r13**2 + r23**2
    determinant = 1 - squares + 2 * r12 * r13 * r23
    noise = 2 * (n - 1) / (n - 3) * determinant
    spread = noise + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / spread)


def probability(t: float, freedom: int) -> float:
    """Return the chance that Student's t is at least as far from 0 as `t`: the two-sided p."""
    return 2 * float(stats.t.sf(abs(t), freedom))
