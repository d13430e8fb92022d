"""z_score: each leg as (s - mean) / standard deviation of its list (the sample's, n - 1).

Scores may be negative.

This is the textbook form. OpenSearch's version replaces scores at or below the mean by 0.001, which
loses their order.
"""

from __future__ import annotations

import numpy as np

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def z_score(legs: Legs, alpha: float) -> Scores:
    """Standardize both legs by mean and deviation of their lists, and weigh them by `alpha`."""
    return weigh(alpha, _scale(legs.bm25), _scale(legs.span))


def _scale(scores: Scores) -> Scores:
    # compare the range: equal scores may deviate from their rounded mean
    deviation = float(scores.std(ddof=1)) if len(scores) > 1 and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation else np.zeros_like(scores)
