"""How the server makes one score of a passage's scores: a weighted mean, or for rrf a weighted sum.
0 says that a leg did not return the passage.

The arithmetic mean counts such a leg: its weight stays in the divisor. The geometric and the
harmonic mean leave it out, weight and all, so that a passage of one leg is not put behind for it.
All the same in every release from 2.12.
"""

from __future__ import annotations

import math

from hybrid_search.search.opensearch.base import ZERO, Single, Singles


def arithmetic(scores: Singles, weights: Singles) -> Single:
    """sum(weight * score) / sum(weight)."""
    divisor = _total(weights)
    return weighted_sum(scores, weights) / divisor if divisor else ZERO


def geometric(scores: Singles, weights: Singles) -> Single:
    """exp(sum(weight * ln(score)) / sum(weight)) over the scores above 0."""
    logs, divisor = ZERO, ZERO
    for score, weight in zip(scores, weights, strict=True):
        if score > ZERO:
            divisor += weight
            logs = Single(
                float(logs) + float(weight) * math.log(score)
            )  # Java adds a double here, and rounds what comes out
    return Single(math.exp(logs / divisor)) if divisor else ZERO


def harmonic(scores: Singles, weights: Singles) -> Single:
    """sum(weight) / sum(weight / score) over the scores above 0."""
    present = [
        (score, weight) for score, weight in zip(scores, weights, strict=True) if score > ZERO
    ]
    divisor = _total([weight / score for score, weight in present])
    return _total([weight for _, weight in present]) / divisor if divisor else ZERO


def weighted_sum(scores: Singles, weights: Singles) -> Single:
    """sum(weight * score): rrf's combination, which divides by nothing."""
    return _total([score * weight for score, weight in zip(scores, weights, strict=True)])


def _total(values: Singles) -> Single:
    total = ZERO
    for value in values:
        total += value
    return total
