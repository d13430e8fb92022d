"""l2: each leg divided by the Euclidean length of its list, s / sqrt(sum of s^2).

OpenSearch's ``l2`` normalization technique.
"""

from __future__ import annotations

import numpy as np

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def l2(legs: Legs, alpha: float) -> Scores:
    """Divide both legs by the lengths of their lists, and weigh them by `alpha`."""
    return weigh(alpha, _scale(legs.bm25), _scale(legs.span))


def _scale(scores: Scores) -> Scores:
    length = float(np.linalg.norm(scores))
    return scores / length if length else np.zeros_like(scores)
