"""z_score: each leg as (s - mean) / standard deviation of its list (the sample's, n - 1).

Scores may be negative.

The textbook form: OpenSearch's own replaces scores at or below the mean by 0.001, which loses their
order.
"""

from __future__ import annotations

import numpy as np

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def z_score(legs: Legs, alpha: float) -> Scores:
    """Return both legs by mean and deviation of their lists, weighed by `alpha`."""
    return weigh(alpha, _scale(legs.bm25), _scale(legs.span))


def _scale(scores: Scores) -> Scores:
    # equal scores may deviate from their rounded mean: their range is what tells
    deviation = float(scores.std(ddof=1)) if len(scores) > 1 and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation else np.zeros_like(scores)
