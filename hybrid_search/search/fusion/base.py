"""The definition of alpha, which every fusion of a convex combination shares."""

from __future__ import annotations

from hybrid_search.search.types import Scores


def weigh(alpha: float, bm25: Scores, cosine: Scores) -> Scores:
    """Return the convex combination: `alpha` is the weight of the span cosine.

    1 is spans only, 0 is BM25 only.
    """
    return alpha * cosine + (1.0 - alpha) * bm25
