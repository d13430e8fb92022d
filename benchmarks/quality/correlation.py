"""Pearson and Spearman correlation and the area under the ROC curve, by scipy.

All are nan, instead of an error or a warning, where they are not defined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    """Return the product-moment correlation; nan if a list is constant or empty."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(stats.pearsonr(x, y).statistic)


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return the Pearson correlation of the ranks."""
    return pearson(ranks(a), ranks(b))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return ranks from 1, float64 ``[n]``; equal values share the mean of their ranks."""
    averaged: NDArray[np.float64] = stats.rankdata(values)
    return averaged


def auc(scores: ArrayLike, labels: Sequence[int]) -> float:
    """Return the share of pairs of a right and a wrong item in which the right one scores higher.

    Equal scores count half (Mann-Whitney U); nan if all items are right, or none is.
    """
    values, right = np.asarray(scores), np.asarray(labels, dtype=bool)
    positive, negative = values[right], values[~right]
    if not len(positive) or not len(negative):
        return float("nan")
    pairs = len(positive) * len(negative)
    return float(stats.mannwhitneyu(positive, negative, method="asymptotic").statistic) / pairs
