"""The percentile bootstrap of a mean, by scipy.

Efron, "Bootstrap methods: another look at the jackknife", 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 5
MAX_DRAWS = 2_000_000
"""Values drawn at a time: 16 MB, whatever the size of the sample."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of the mean of `values`; the same for the same values.

    A single value is its own interval.
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) == 1:
        return float(sample[0]), float(sample[0])
    low, high = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, MAX_DRAWS // len(sample)),
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(low), float(high)


def summary(values: Sequence[float]) -> dict[str, float | list[float]]:
    """Return the mean and its interval, as a row of a result."""
    return {
        "mean": round(float(np.mean(values)), 4),
        "interval": [round(bound, 4) for bound in interval(values)],
    }


def difference(first: Sequence[float], second: Sequence[float]) -> dict[str, float | list[float]]:
    """Return how far the mean of `first` is above that of `second`, with its interval.

    Paired: both hold values of the same queries in the same order.
    """
    return summary([a - b for a, b in zip(first, second, strict=True)])
