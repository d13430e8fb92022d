"""The definition of alpha, shared by every fusion that is a convex combination."""

from __future__ import annotations

from hybrid_search.search.types import Scores


def weigh(alpha: float, bm25: Scores, cosine: Scores) -> Scores:
    """Return the convex combination: `alpha` is the weight of the span cosine.

    1 is spans only, 0 is BM25 only.
    """
    return alpha * cosine + (1.0 - alpha) * bm25
