"""calibrated, the default: a convex combination of both legs after the model's fixed maps.

score = alpha / (1 + e^(-slope * (span - midpoint))) + (1 - alpha) * bm25 / (bm25 + saturation *
terms). Fixed transforms instead of list extremes follow Bruch, Gai, Ingber, "An Analysis of Fusion
Functions for Hybrid Retrieval", 2023.
"""

from __future__ import annotations

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def fuse_calibrated(legs: Legs, alpha: float) -> Scores:
    """Map both legs with the model's calibration, and weigh them by `alpha`."""
    bm25 = legs.calibration.bm25(legs.bm25, legs.terms)
    return weigh(alpha, bm25, legs.calibration.span(legs.span))
