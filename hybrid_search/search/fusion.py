"""Fusions by name: each combines the two scores of a passage into one.

Input: `Legs`, the scores and ranks of both legs, and alpha. Output: float64 ``[n]``, higher is
better.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid_search.search.types import Legs, Ranks, Scores

RANK_CONSTANT = 60
"""The k of the paper on `rrf`, found not to be critical; also the default of servers."""


def weigh(alpha: float, bm25: Scores, cosine: Scores) -> Scores:
    """Return the convex combination: alpha 1 is spans only, 0 is BM25 only."""
    return alpha * cosine + (1.0 - alpha) * bm25


def fuse_calibrated(legs: Legs, alpha: float) -> Scores:
    """Return both legs as the model's fixed maps have them, weighed. This is the default.

    score = alpha / (1 + e^(-slope * (span - midpoint))) + (1 - alpha) * bm25 / (bm25 + saturation *
    terms). Fixed transforms instead of list extremes follow Bruch, Gai, Ingber, "An Analysis of
    Fusion Functions for Hybrid Retrieval", 2023.
    """
    bm25 = legs.calibration.bm25(legs.bm25, legs.terms)
    return weigh(alpha, bm25, legs.calibration.span(legs.span))


def min_max(legs: Legs, alpha: float) -> Scores:
    """Return both legs scaled by the extremes of their lists, (s - min) / (max - min), weighed.

    Fox and Shaw, "Combination of Multiple Searches", 1994. If all scores of a leg are equal, each
    becomes 1 if it is above 0, else 0.
    """
    return weigh(alpha, _scale_by_extremes(legs.bm25), _scale_by_extremes(legs.span))


def _scale_by_extremes(scores: Scores) -> Scores:
    if not len(scores) or scores.max() == scores.min():
        return (scores > 0).astype(np.float64)
    scaled: Scores = (scores - scores.min()) / (scores.max() - scores.min())
    return scaled


def l2(legs: Legs, alpha: float) -> Scores:
    """Return both legs divided by the lengths of their lists, s / sqrt(sum of s^2), weighed.

    OpenSearch's ``l2`` normalization technique.
    """
    return weigh(alpha, _scale_by_length(legs.bm25), _scale_by_length(legs.span))


def _scale_by_length(scores: Scores) -> Scores:
    length = float(np.linalg.norm(scores))
    return scores / length if length else np.zeros_like(scores)


def z_score(legs: Legs, alpha: float) -> Scores:
    """Return both legs standardized, (s - mean) / standard deviation (n - 1), weighed.

    Scores may be negative. This is the textbook form: OpenSearch's version replaces scores at or
    below the mean by 0.001, which loses their order.
    """
    return weigh(alpha, _standardize(legs.bm25), _standardize(legs.span))


def _standardize(scores: Scores) -> Scores:
    # compare the range: equal scores may deviate from their rounded mean
    deviation = float(scores.std(ddof=1)) if len(scores) > 1 and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation else np.zeros_like(scores)


def rrf(legs: Legs, alpha: float) -> Scores:
    """Return the reciprocal ranks of both legs, 1 / (60 + rank), weighed; 0 without a rank.

    Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion", SIGIR 2009. A passage has no rank beyond
    the window, or without a matching term.
    """
    return weigh(alpha, _invert(legs.bm25_rank), _invert(legs.cosine_rank))


def _invert(ranks: Ranks) -> Scores:
    return np.where(ranks > 0, 1.0 / (RANK_CONSTANT + ranks), 0.0)


FUSIONS: dict[str, Callable[[Legs, float], Scores]] = {
    "calibrated": fuse_calibrated,
    "min_max": min_max,
    "l2": l2,
    "z_score": z_score,
    "rrf": rrf,
}
