"""Fit the map from scores to probabilities: a logistic with two parameters (Platt scaling).

The parameters maximise the likelihood of the labels, found by Newton's method. A few labels, or
labels that a limit separates, would make the slope infinite; so the targets are those of Platt
(1999), ``(positives + 1) / (positives + 2)`` and ``1 / (negatives + 2)``, in place of 1 and 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import RANGES, Calibration

Scores = NDArray[np.float64]
Labels = NDArray[np.bool_]

STEPS = 100
TOLERANCE = 1e-10
"""The change of both parameters at which Newton's method has converged."""

RIDGE = 1e-9
"""Added to the diagonal of the Hessian: equal scores would make it singular."""


def fit_logistic(scores: Scores, labels: Labels, weights: Scores | None = None) -> Calibration:
    """Return the calibration under which labels are most likely.

    Args:
        scores: Float64 ``[n]``.
        labels: Whether each is a mention, bool ``[n]``.
        weights: How often each counts, float64 ``[n]``; None for once each.

    Returns:
        A calibration whose slope is positive: a larger score is never less likely.

    Raises:
        UsageError: If there are not both kinds of labels.
    """
    counts = np.ones(len(scores)) if weights is None else weights
    positives, negatives = float(counts[labels].sum()), float(counts[~labels].sum())
    if not (positives and negatives):
        raise UsageError(
            f"{positives:g} spans are judged to be mentions and {negatives:g} not to be: judge at "
            "least one of each kind"
        )
    targets = np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    intercept, slope = _maximise_likelihood(scores, targets, counts)
    low, high = RANGES["slope"]
    slope = float(np.clip(slope, low, high))
    midpoint_low, midpoint_high = RANGES["midpoint"]
    midpoint = float(np.clip(-intercept / slope, midpoint_low, midpoint_high))
    return Calibration(midpoint, slope)


def _maximise_likelihood(scores: Scores, targets: Scores, counts: Scores) -> tuple[float, float]:
    """Return intercept and slope of the logistic with the largest likelihood."""
    inputs = np.stack([np.ones(len(scores)), scores], axis=1)
    parameters = np.zeros(2)
    for _ in range(STEPS):
        probabilities = 1.0 / (1.0 + np.exp(-np.clip(inputs @ parameters, -30, 30)))
        gradient = inputs.T @ (counts * (targets - probabilities))
        curvature = counts * probabilities * (1 - probabilities)
        hessian = (inputs * curvature[:, None]).T @ inputs + RIDGE * np.eye(2)
        step = np.linalg.solve(hessian, gradient).astype(np.float64)
        parameters += _limit(step)
        if np.abs(step).max() < TOLERANCE:
            break
    return float(parameters[0]), float(parameters[1])


def _limit(step: Scores) -> Scores:
    """Return a step of at most 5 for each parameter: far from the maximum full ones overshoot."""
    limited: Scores = step / max(1.0, float(np.abs(step).max()) / 5.0)
    return limited


def bin_probabilities(
    probabilities: Scores, labels: Labels, bins: int = 10
) -> list[tuple[int, float, float]]:
    """Return the reliability plot: how many, how probable, and what share of them are mentions.

    One row for each of equally wide bins that is not empty, from the least probable to the most:
    the number of labels, their mean probability, and the share of mentions among them.
    """
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    counts = np.bincount(numbers, minlength=bins)
    expected = np.bincount(numbers, probabilities, minlength=bins)
    mentions = np.bincount(numbers, labels, minlength=bins)
    return [
        (int(count), float(expected[number] / count), float(mentions[number] / count))
        for number, count in enumerate(counts)
        if count
    ]


def calibration_error(probabilities: Scores, labels: Labels, bins: int = 10) -> float:
    """Return the expected calibration error, from 0 to 1.

    It is the mean over equally wide bins of the difference between the mean probability and the
    share of mentions in it, weighted by how many fall into each (Naeini et al. 2015).
    """
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    sums = np.bincount(numbers, probabilities - labels, minlength=bins)
    return float(np.abs(sums).sum() / max(1, len(labels)))
