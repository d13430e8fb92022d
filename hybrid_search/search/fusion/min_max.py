"""min_max: each leg scaled by its own list, (s - min) / (max - min).

Fox and Shaw, "Combination of Multiple Searches", 1994.

If all scores of a leg are equal, each becomes 1 if it is above 0, else 0.
"""

from __future__ import annotations

import numpy as np

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def min_max(legs: Legs, alpha: float) -> Scores:
    """Scale both legs by the extremes of their lists, and weigh them by `alpha`."""
    return weigh(alpha, _scale(legs.bm25), _scale(legs.span))


def _scale(scores: Scores) -> Scores:
    if not len(scores) or scores.max() == scores.min():
        return (scores > 0).astype(np.float64)
    scaled: Scores = (scores - scores.min()) / (scores.max() - scores.min())
    return scaled
