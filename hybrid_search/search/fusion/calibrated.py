"""calibrated, the default: both legs through maps fixed for the model, then a convex combination.

score = alpha / (1 + e^(-slope * (span - midpoint))) + (1 - alpha) * bm25 / (bm25 + saturation *
terms). The idea of comparing by fixed transforms rather than by list extremes: Bruch, Gai, Ingber,
"An Analysis of Fusion Functions for Hybrid Retrieval", 2023.
"""

from __future__ import annotations

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Scores


def fuse_calibrated(legs: Legs, alpha: float) -> Scores:
    """Return both legs by the maps of the model, weighed by `alpha`."""
    bm25 = legs.calibration.bm25(legs.bm25, legs.terms)
    return weigh(alpha, bm25, legs.calibration.span(legs.span))
