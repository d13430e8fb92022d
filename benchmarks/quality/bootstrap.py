"""The percentile bootstrap of a mean: Efron, "Bootstrap methods: another look at the jackknife",
1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 5
TOGETHER = 2_000_000
"""Values drawn at a time: 16 MB, however many there are to draw from."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the mean of `values`, which are drawn again with replacement.

    The same values give the same interval.
    """
    sample, generator = np.asarray(values, dtype=np.float64), np.random.default_rng(SEED)
    rows = max(1, TOGETHER // len(sample))
    sizes = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    means = [
        sample[generator.integers(0, len(sample), size=(size, len(sample)))].mean(axis=1)
        for size in sizes
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def summary(values: Sequence[float]) -> dict[str, float | list[float]]:
    """The mean and its interval, as a row of a result."""
    return {
        "mean": round(float(np.mean(values)), 4),
        "interval": [round(bound, 4) for bound in interval(values)],
    }


def difference(first: Sequence[float], second: Sequence[float]) -> dict[str, float | list[float]]:
    """The mean of `first` over that of `second` and its interval, paired: both are of the same
    queries, in the same order.
    """
    return summary([a - b for a, b in zip(first, second, strict=True)])
