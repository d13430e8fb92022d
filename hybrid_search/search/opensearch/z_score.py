"""z_score as the server has it (from 3.0): (s - mean) / standard deviation of the leg's scores.

The deviation is the sample's, n - 1. Three oddities, in the order in which the server tests for
them: a score equal to the mean counts its leg's highest raw score (so does a lone hit, and every
hit of a leg whose scores are equal); without deviation each counts the lowest raw score; a result
of 0 or less counts 0.001, which loses the order of those.

Mean and deviation are those of commons-math: both in two passes and double precision, the second
pass taking out the rounding of the first.
"""

from __future__ import annotations

import math

from hybrid_search.search.opensearch.base import FLOOR, ZERO, Single, Singles


def z_score(scores: Singles) -> list[Single]:
    """Return the scores of one leg in deviations from their mean, 0.001 where not above it."""
    if not scores:
        return []
    mean, deviation = _moments([float(score) for score in scores])
    return [_scale(score, mean, deviation, scores) for score in scores]


def _scale(score: Single, mean: Single, deviation: Single, scores: Singles) -> Single:
    if score == mean:
        return max(scores)
    if not deviation:
        return min(scores)
    scaled = (score - mean) / deviation
    return scaled if scaled > ZERO else FLOOR


def _moments(values: list[float]) -> tuple[Single, Single]:
    """Return mean and deviation of doubles.

    Not by ``sum``: it compensates rounding, and commons-math does not.
    """
    count = len(values)
    rough = _total(values) / count
    mean = rough + _total([value - rough for value in values]) / count
    if count == 1:
        return Single(mean), ZERO
    residual_sum = _total([value - mean for value in values])
    squares = _total([(value - mean) * (value - mean) for value in values])
    variance = (squares - residual_sum * residual_sum / count) / (count - 1)
    return Single(mean), Single(math.sqrt(variance))


def _total(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
