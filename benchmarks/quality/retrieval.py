"""nDCG@10, MRR@10 and recall of every way of ranking, on the queries marked `dev`.

The ways are BM25, spans, the hybrid at alpha 0 to 1, every fusion at 0.5, the hybrid with feedback,
and one vector a passage. Ranked are places (passages as the turns in them). Both legs return 100
passages, so recall@100 is that of the product's own candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.quality.collection import Collection, Place, sample_evenly
from benchmarks.quality.measures import difference, evaluate, row
from benchmarks.quality.tasks import Query
from hybrid_search.backends.types import Request
from hybrid_search.search import phrase_vector
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import fuse
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.query import DEFAULT_FUSION as DEFAULT
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text.types import Floats

ALPHAS = tuple(round(0.1 * step, 1) for step in range(11))
MOST = 700
"""Queries of a task that are measured, evenly spread: squad_dev has 2,000."""
BM25, SPANS, HYBRID, MEANS = "bm25", "spans", "hybrid 0.5", "one vector a passage"
FEEDBACK, DOCUMENTS = "hybrid 0.5, feedback 10", 10
"""The name of a second search, and the documents whose best spans it asks with."""
PAIRS = ((HYBRID, BM25), (HYBRID, MEANS), (SPANS, MEANS))
"""Ways of ranking whose difference is reported with its interval."""
DEPTH = 100
"""Places that the baseline ranks: as many as a leg of the product returns passages."""


@dataclass(frozen=True, slots=True)
class Rankings:
    """Queries, their grades by place, and by way of ranking the places found, best first."""

    queries: list[Query]
    right: list[dict[Place, int]]
    ways: dict[str, list[list[Place]]]

    @property
    def groups(self) -> list[str]:
        """The group of each query."""
        return [query.group for query in self.queries]


def measure(collection: Collection, queries: Sequence[Query]) -> dict[str, Any]:
    """Return a row for each way of ranking, and the differences of `PAIRS`.

    A row is {"ndcg@10", "ndcg@10 interval", "mrr@10", "recall@10", "recall@100"}.
    """
    ranked = rank(collection, queries)
    values = {way: evaluate(places, ranked.right) for way, places in ranked.ways.items()}
    return {
        "documents": len(collection.places),
        "queries": len(ranked.queries),
        "groups": len(set(ranked.groups)),
        "rankings": {way: row(way_values, ranked.groups) for way, way_values in values.items()},
        "differences": {
            f"{a} - {b}": difference(values[a], values[b], ranked.groups) for a, b in PAIRS
        },
    }


def rank(collection: Collection, queries: Sequence[Query]) -> Rankings:
    """Return the rankings of at most `MOST` of `queries`, evenly spread.

    Queries for which nothing in this collection is relevant are left out.
    """
    queries = [query for query in sample_evenly(queries, MOST) if collection.relevant_places(query)]
    ways: dict[str, list[list[Place]]] = {}
    for query in queries:
        request, scored = collection.candidates(query)
        ways.setdefault(FEEDBACK, []).append(_rank_with_feedback(collection, request, scored))
        for name, fusion, alpha in _ways():
            ways.setdefault(name, []).append(
                _rank_places(collection, scored, request, fusion, alpha)
            )
    ways[MEANS] = _rank_by_means(collection, queries)
    return Rankings(queries, [_grades(collection, query) for query in queries], ways)


def _grades(collection: Collection, query: Query) -> dict[Place, int]:
    right = collection.relevant_places(query)
    return {
        place: query.grades.get(id_, 1)
        for id_ in query.right
        for place in collection.places.get(id_, ())
        if place in right
    }


def _ways() -> list[tuple[str, str, float]]:
    fused = [(f"hybrid {alpha}", DEFAULT, alpha) for alpha in ALPHAS[1:-1]]
    other_fusions = [(f"{name} 0.5", name, 0.5) for name in FUSIONS if name != DEFAULT]
    return [(BM25, DEFAULT, 0.0), (SPANS, DEFAULT, 1.0), *fused, *other_fusions]


def _rank_with_feedback(
    collection: Collection, request: Request, scored: Sequence[ScoredPassage]
) -> list[Place]:
    """Return places as the default fusion ranks what a second search finds."""
    model = collection.model
    fused = fuse(scored, request, DEFAULT, 0.5, model.calibration or Calibration())
    moved = add_feedback(request, fused, DOCUMENTS)
    return _rank_places(collection, collection.retrieve(moved), moved, DEFAULT, 0.5)


def _rank_places(
    collection: Collection,
    scored: Sequence[ScoredPassage],
    request: Request,
    fusion: str,
    alpha: float,
) -> list[Place]:
    """Return places, best first; at alpha 0 a passage without a matching term is not a hit."""
    calibration = collection.model.calibration or Calibration()
    fused = sorted(
        fuse(scored, request, fusion, alpha, calibration),
        key=lambda scored_passage: scored_passage.sort_key,
    )
    return [
        collection.place(scored_passage)
        for scored_passage in fused
        if alpha > 0 or scored_passage.stored.bm25 > 0
    ]


def _rank_by_means(collection: Collection, queries: Sequence[Query]) -> list[list[Place]]:
    document_places, vectors = collection.mean_vectors()
    documents = np.array([id_ for id_, _ in document_places])
    places = [place for _, place in document_places]
    return [
        _find_nearest(
            phrase_vector.query_vector(collection.model.encoder, query.text),
            query.within,
            places,
            documents,
            vectors,
        )
        for query in queries
    ]


def _find_nearest(
    query: Floats, within: str | None, places: Sequence[Place], documents: Any, vectors: Floats
) -> list[Place]:
    """Return the `DEPTH` nearest passages; with `within`, of that document alone."""
    scores = vectors @ query
    inside = np.flatnonzero(documents == within) if within else np.arange(len(places))
    return [
        places[number]
        for number in inside[np.argsort(-scores[inside], kind="stable")][:DEPTH].tolist()
    ]
