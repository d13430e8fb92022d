"""Pearson and Spearman correlation, and the area under the ROC curve. numpy alone, ties as their
mean rank.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    """Product-moment correlation of two lists of equal length; nan where one of them is constant,
    or there is nothing.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y) / float(np.sqrt((x @ x) * (y @ y)))


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Pearson correlation of the ranks."""
    return pearson(ranks(a), ranks(b))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1, float64 ``[n]``; equal values share the mean of theirs."""
    _, group, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


def auc(scores: ArrayLike, labels: Sequence[int]) -> float:
    """The share of pairs of a right and a wrong one in which the right one scores higher; equal
    scores count half (Mann-Whitney U).

    nan where there are none of either kind.
    """
    right = np.asarray(labels, dtype=bool)
    positive, negative = int(right.sum()), int((~right).sum())
    if not positive * negative:
        return float("nan")
    return float(ranks(scores)[right].sum() - positive * (positive + 1) / 2) / (positive * negative)
