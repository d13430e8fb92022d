"""nDCG@10 and MRR of BM25, spans, hybrid at alpha 0 to 1, every fusion at 0.5, and one vector a passage, on the queries marked `dev`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from benchmarks.quality.collection import Collection, sampled
from benchmarks.quality.measures import grouped_mean, ndcg, reciprocal_rank
from benchmarks.quality.tasks import Query
from hybrid_search import phrase
from hybrid_search.backends.base import Request
from hybrid_search.calibration import Calibration
from hybrid_search.fusion import DEFAULT, FUSIONS
from hybrid_search.scoring import Scored, fuse
from hybrid_search.types import Floats

ALPHAS = tuple(round(0.1 * step, 1) for step in range(11))
MOST = 700
"""Queries of a task that are measured, evenly spread: squad_dev has 2,000."""


def measure(collection: Collection, queries: Sequence[Query]) -> dict[str, Any]:
    """A row for each way of ranking: name -> {"ndcg@10", "mrr@10"}."""
    queries = [query for query in sampled(queries, MOST) if collection.right(query)]
    rankings: dict[str, list[list[Hashable]]] = {}
    for query in queries:
        request, scored = collection.candidates(query)
        for name, fusion, alpha in _ways():
            rankings.setdefault(name, []).append(_order(collection, scored, request, fusion, alpha))
    rankings["one vector a passage"] = _by_means(collection, queries)
    groups = [query.group for query in queries]
    right = [collection.right(query) for query in queries]
    return {"queries": len(queries), "groups": len(set(groups)), "rankings": {name: _row(ranked, right, groups) for name, ranked in rankings.items()}}


def _ways() -> list[tuple[str, str, float]]:
    fused = [(f"hybrid {alpha}", DEFAULT, alpha) for alpha in ALPHAS[1:-1]]
    others = [(f"{name} 0.5", name, 0.5) for name in FUSIONS if name != DEFAULT]
    return [("bm25", DEFAULT, 0.0), ("spans", DEFAULT, 1.0), *fused, *others]


def _order(collection: Collection, scored: Sequence[Scored], request: Request, fusion: str, alpha: float) -> list[Hashable]:
    """Places, best first. At alpha 0 a passage without a matching term is not a hit."""
    fixed = collection.model.calibration or Calibration()
    fused = sorted(fuse(scored, request, fusion, alpha, fixed), key=lambda each: each.order)
    return [collection.place(each) for each in fused if alpha > 0 or each.stored.bm25 > 0]


def _by_means(collection: Collection, queries: Sequence[Query]) -> list[list[Hashable]]:
    found, vectors = collection.means()
    documents = np.array([id_ for id_, _ in found])
    places = [place for _, place in found]
    return [_nearest(phrase.vector(collection.model.encoder, each.text), each.within, places, documents, vectors) for each in queries]


def _nearest(query: Floats, within: str | None, places: Sequence[Hashable], documents: Any, vectors: Floats) -> list[Hashable]:
    scores = vectors @ query
    if within:
        scores = np.where(documents == within, scores, -2.0)
    return [places[number] for number in np.argsort(-scores, kind="stable")[:50]]


def _row(ranked: Sequence[Sequence[Hashable]], right: Sequence[set[Hashable]], groups: Sequence[str]) -> dict[str, float]:
    measures = {"ndcg@10": ndcg, "mrr@10": reciprocal_rank}
    return {name: round(grouped_mean([function(a, b) for a, b in zip(ranked, right, strict=True)], groups), 4) for name, function in measures.items()}
