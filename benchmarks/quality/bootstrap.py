"""The percentile bootstrap of a mean: Efron, "Bootstrap methods: another look at the jackknife", 1979."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 5


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the mean of `values`, which are drawn again with replacement. The same values give the same interval."""
    drawn = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def summary(values: Sequence[float]) -> dict[str, float | list[float]]:
    """The mean and its interval, as a row of a result."""
    return {"mean": round(float(np.mean(values)), 4), "interval": [round(each, 4) for each in interval(values)]}


def difference(first: Sequence[float], second: Sequence[float]) -> dict[str, float | list[float]]:
    """The mean of `first` over that of `second` and its interval, paired: both are of the same queries, in the same order."""
    return summary([a - b for a, b in zip(first, second, strict=True)])
