"""calibrated: a convex combination after each leg went through a map that is fixed for the model
(the default).

score = alpha / (1 + e^(-slope * (cosine - midpoint))) + (1 - alpha) * bm25 / (bm25 + saturation *
terms). The idea of comparing by fixed transforms rather than by list extremes: Bruch, Gai, Ingber,
"An Analysis of Fusion Functions for Hybrid Retrieval", 2023.
"""

from __future__ import annotations

from hybrid_search.search.fusion.base import Legs, Scores, weigh


def calibrated(legs: Legs, alpha: float) -> Scores:
    """Both legs by the maps of the model, weighed by alpha."""
    return weigh(
        alpha, legs.calibration.bm25(legs.bm25, legs.terms), legs.calibration.cosine(legs.cosine)
    )
