"""Combine a passage's scores as the server does: a weighted mean, for rrf a weighted sum.

A score of 0 says that a leg did not return the passage. The arithmetic mean counts that leg: its
weight stays in the divisor. The geometric and the harmonic mean leave it out, weight and all, so
that a passage of one leg is not put behind for it. All the same in every release from 2.12.
"""

from __future__ import annotations

import math

from hybrid_search.search.opensearch.base import ZERO, Single, Singles


def arithmetic(scores: Singles, weights: Singles) -> Single:
    """Return sum(weight * score) / sum(weight)."""
    divisor = _total(weights)
    return weighted_sum(scores, weights) / divisor if divisor else ZERO


def geometric(scores: Singles, weights: Singles) -> Single:
    """Return exp(sum(weight * ln(score)) / sum(weight)) over the scores above 0."""
    logs, divisor = ZERO, ZERO
    for score, weight in zip(scores, weights, strict=True):
        if score > ZERO:
            divisor += weight
            # Java adds a double here, and rounds the sum
            logs = Single(float(logs) + float(weight) * math.log(score))
    return Single(math.exp(logs / divisor)) if divisor else ZERO


def harmonic(scores: Singles, weights: Singles) -> Single:
    """Return sum(weight) / sum(weight / score) over the scores above 0."""
    present = [
        (score, weight) for score, weight in zip(scores, weights, strict=True) if score > ZERO
    ]
    divisor = _total([weight / score for score, weight in present])
    return _total([weight for _, weight in present]) / divisor if divisor else ZERO


def weighted_sum(scores: Singles, weights: Singles) -> Single:
    """Return sum(weight * score): the combination of rrf, which divides by nothing."""
    return _total([score * weight for score, weight in zip(scores, weights, strict=True)])


def _total(values: Singles) -> Single:
    total = ZERO
    for value in values:
        total += value
    return total
