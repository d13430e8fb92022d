"""Choose the parameters of the default fusion from a grid, on judged queries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

from benchmarks.quality.measures import grouped_mean
from hybrid_search.search.calibration import Calibration

COSINE_MIDPOINTS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
TYPICAL_PRIOR = 0.3
"""What the prior adds to the cosine of a clause."""
SCORE_MIDPOINTS = tuple(round(midpoint + TYPICAL_PRIOR, 2) for midpoint in COSINE_MIDPOINTS)
SLOPES = (4.0, 6.0, 8.0, 10.0, 12.0)
"""A steeper map than 12 is nearly a step: most scores would be 0 or 1."""
SATURATIONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
NOISE = 0.005
"""Differences of mean nDCG@10 up to this size do not tell which is better."""


class Judged(Protocol):
    """A query whose fused ranking can be judged under any calibration."""

    @property
    def group(self) -> str:
        """The group over which values are averaged first."""
        ...

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        """Return nDCG@10 of the calibrated fusion."""
        ...


def fit(
    tasks: Sequence[Sequence[Judged]], midpoints: Sequence[float] = COSINE_MIDPOINTS
) -> tuple[Calibration, float]:
    """Return the best of the grid by mean nDCG@10 over tasks at alpha 0.5, and that mean."""
    trials = [
        (_mean(tasks, candidate), candidate)
        for candidate in (
            Calibration(*parameters)
            for parameters in itertools.product(midpoints, SLOPES, SATURATIONS)
        )
    ]
    best = max(mean for mean, _ in trials)
    # The gentlest map of all that are as good as the best within the noise: a phrase of two words
    # has lower cosines than the questions here, and a steep map would set all of them to 0.
    # (Recall@10 on the hard sample's topics: .42 with slope 4, .36 with 12.)
    mean, calibration = max(
        (trial for trial in trials if trial[0] >= best - NOISE),
        key=lambda trial: (-trial[1].slope, trial[0]),
    )
    return calibration, mean


def _mean(tasks: Sequence[Sequence[Judged]], calibration: Calibration) -> float:
    means = [
        grouped_mean([query.ndcg(calibration) for query in task], [query.group for query in task])
        for task in tasks
    ]
    return sum(means) / len(means)
