"""Fit the map from scores to probabilities: a logistic with two parameters.

The parameters maximise the likelihood of the labels, found by Newton's method. A few labels say
little of the slope, and labels that a limit separates would make it infinite; so the slope has a
normal prior. It shrinks to the usual slope, the less the more labels there are.
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

Covariance = tuple[float, float, float]
"""The variance of an intercept, its covariance with a slope, and the variance of the slope."""

Interval = tuple[float, float]

Z_95, Z_ONE_SIDED = 1.96, 1.64
"""Standard errors of an interval that holds 95 of 100 times, and of a test on one side."""

RIDGE = 1e-9
"""Added to the information of the intercept: labels far from the midpoint have none."""


USUAL_SLOPE = 17.0
"""The usual slope for a model without a measured map."""

SPREAD_OF_SLOPES = 0.5
"""The standard deviation of the prior, as a share of the usual slope.

The slopes of labelled intents, fitted one by one, have 0.3; chosen by the results of 20 judgments
each (`benchmarks.quality.judging`).
"""


def fit_logistic(
    scores: Scores,
    labels: Labels,
    weights: Scores | None = None,
    usual_slope: float = USUAL_SLOPE,
) -> Calibration:
    """Return the calibration under which labels are most likely.

    Args:
        scores: Float64 ``[n]``.
        labels: Whether each is a mention, bool ``[n]``.
        weights: How often each counts, float64 ``[n]``; None for once each.
        usual_slope: The mean of the prior of the slope.

    Returns:
        A calibration whose slope is positive: a larger score is never less likely. UsageError is
        raised if there are not both kinds of labels.
    """
    counts = np.ones(len(scores)) if weights is None else weights
    check_kinds(float(counts[labels].sum()), float(counts[~labels].sum()))
    intercept, steepness = _maximise_likelihood(scores, labels, counts, usual_slope)
    slope = float(np.clip(steepness, *RANGES["slope"]))
    return Calibration(float(np.clip(-intercept / slope, *RANGES["midpoint"])), slope)


def check_kinds(positives: float, negatives: float) -> None:
    """Raise UsageError unless there are labels of both kinds."""
    if not (positives and negatives):
        raise UsageError(
            f"{positives:g} spans are judged to be mentions and {negatives:g} not to be: judge at "
            "least one of each kind"
        )


def estimate_covariance(
    calibration: Calibration, scores: Scores, usual_slope: float = USUAL_SLOPE
) -> Covariance:
    """Return how far intercept and slope may be off: the inverse of information and prior.

    The calibration, whose log odds are ``intercept + slope * score``, was fitted to `scores`,
    float64 ``[n]``; `usual_slope` is the mean of the prior of the slope.
    """
    probabilities = calibration.span(scores)
    information = _sum_information(scores, probabilities * (1 - probabilities), usual_slope)
    (intercept, both), (_, slope) = np.linalg.inv(information).tolist()
    return intercept, both, slope


def _sum_information(scores: Scores, curvature: Scores, usual_slope: float) -> Scores:
    """Return the information of scores and of the prior, float64 ``[2, 2]``."""
    inputs = np.stack([np.ones(len(scores)), scores], axis=1)
    precision = (SPREAD_OF_SLOPES * usual_slope) ** -2
    information: Scores = (inputs * curvature[:, None]).T @ inputs + np.diag([RIDGE, precision])
    return information


def find_midpoint_interval(calibration: Calibration, covariance: Covariance) -> Interval:
    """Return the scores that may be the midpoint, 95 times of 100 (Fieller 1954).

    They are those at which the log odds are within 1.96 standard errors of 0. If the slope itself
    is within as many of 0, as after a few answers, nothing is known: all allowed ones are returned.
    """
    low, high = RANGES["midpoint"]
    slope, intercept = calibration.slope, -calibration.slope * calibration.midpoint
    # (intercept + slope * m)^2 <= z^2 * variance of the log odds at m
    constant, linear, square = (
        product - Z_95**2 * variance
        for product, variance in zip(
            (intercept**2, intercept * slope, slope**2), covariance, strict=True
        )
    )
    if square <= 0:
        return low, high
    root = np.sqrt(max(linear**2 - square * constant, 0.0))
    bounds = np.clip([(-linear - root) / square, (-linear + root) / square], low, high)
    return float(bounds[0]), float(bounds[1])


def measure_concordance(scores: Scores, labels: Labels) -> tuple[float, bool]:
    """Return how well scores tell mentions from other spans, and whether that may be chance.

    The first is the share of pairs of a mention and another span in which the mention has the
    larger score (the area under the ROC curve), 0..1; of equal scores it has half. It may be chance
    if it is not larger than 0.5 by 1.64 standard errors of Mann and Whitney's test.
    """
    mentions, others = scores[labels], scores[~labels]
    differences = np.sign(mentions[:, None] - others[None, :])
    concordance = float(differences.mean() + 1) / 2
    error = np.sqrt((len(scores) + 1) / (12 * len(mentions) * len(others)))
    return concordance, bool(concordance - 0.5 < Z_ONE_SIDED * error)


def _maximise_likelihood(
    scores: Scores, labels: Labels, counts: Scores, usual_slope: float
) -> tuple[float, float]:
    """Return intercept and slope of the logistic with the largest likelihood, prior included."""
    inputs = np.stack([np.ones(len(scores)), scores], axis=1)
    precision = (SPREAD_OF_SLOPES * usual_slope) ** -2
    parameters = np.zeros(2)
    for _ in range(STEPS):
        probabilities = 1.0 / (1.0 + np.exp(-np.clip(inputs @ parameters, -30, 30)))
        gradient = inputs.T @ (counts * (labels - probabilities))
        gradient[1] += precision * (usual_slope - parameters[1])
        curvature = counts * probabilities * (1 - probabilities)
        step = np.linalg.solve(_sum_information(scores, curvature, usual_slope), gradient)
        # at most 5 for each parameter: far from the maximum full steps overshoot
        parameters += step / max(1.0, float(np.abs(step).max()) / 5.0)
        if np.abs(step).max() < TOLERANCE:
            break
    return float(parameters[0]), float(parameters[1])


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
    rows = bin_probabilities(probabilities, labels, bins)
    return sum(count * abs(mean - share) for count, mean, share in rows) / max(1, len(labels))
