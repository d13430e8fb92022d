"""rrf: weighted reciprocal ranks, weight / (60 + rank).

Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion", SIGIR 2009.

A leg in which a passage has no rank (beyond the window, or no matching term) contributes 0.
"""

from __future__ import annotations

import numpy as np

from hybrid_search.search.fusion.base import weigh
from hybrid_search.search.types import Legs, Ranks, Scores

RANK_CONSTANT = 60
"""The paper's k, found not to be critical; also the default of OpenSearch and Elasticsearch."""


def rrf(legs: Legs, alpha: float) -> Scores:
    """Score both legs by their ranks alone, and weigh them by `alpha`."""
    return weigh(alpha, _reciprocal_ranks(legs.bm25_rank), _reciprocal_ranks(legs.cosine_rank))


def _reciprocal_ranks(ranks: Ranks) -> Scores:
    return np.where(ranks > 0, 1.0 / (RANK_CONSTANT + ranks), 0.0)
