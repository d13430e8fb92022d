"""z_score as the server has it (from 3.0): (s - mean) / standard deviation over what the leg
returned; the sample's deviation, n - 1.

Three oddities, in the order in which the server asks: a score equal to the mean counts its leg's
highest raw score (so does a lone hit, and every hit of a leg whose scores are equal); without
deviation each counts the lowest raw score; what is at or under 0 counts 0.001, whatever its order
was.

Mean and deviation are commons-math's: both in two passes and double precision, the second pass
taking out the rounding of the first.
"""

from __future__ import annotations

import math

from hybrid_search.search.opensearch.base import FLOOR, ZERO, Single, Singles


def z_score(scores: Singles) -> list[Single]:
    """`scores` of one leg in deviations from their mean, 0.001 where not above it."""
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
    """Mean and deviation of doubles.

    Not by ``sum``: it compensates rounding, and commons-math does not.
    """
    rough = _total(values) / len(values)
    mean = rough + _total([value - rough for value in values]) / len(values)
    if len(values) == 1:
        return Single(mean), ZERO
    residual_sum = _total([value - mean for value in values])
    squares = _total([(value - mean) * (value - mean) for value in values])
    return Single(mean), Single(
        math.sqrt((squares - residual_sum * residual_sum / len(values)) / (len(values) - 1))
    )


def _total(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
