"""compat="opensearch": rank a query as the server's own ``hybrid`` query ranks it.

A server that has hybrid queries does it itself; everywhere else its arithmetic does it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybrid_search.backends.base import Backend, OwnHybridBackend
from hybrid_search.backends.types import Key, Request
from hybrid_search.search import opensearch
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import Retrieved, complete_scores, fuse, retrieve
from hybrid_search.search.types import ScoredPassage


def technique(name: str | None, fusion: str) -> str | None:
    """Return the server's name of a fusion; None without `name`, the value of compat."""
    return opensearch.technique_of(fusion) if name else None


def score_as_server(
    backend: Backend, index: str, request: Request, alpha: float, fusion: str
) -> tuple[list[ScoredPassage], dict[str, Any]]:
    """Return passages with the scores of the server's ``hybrid`` query, and what computed them."""
    # it runs a leg of weight 0, too, and knows no prior
    request = replace(request, lexical=True, semantic=True, prior=None)
    server_scores = (
        backend.fetch_hybrid_scores(index, request, alpha, opensearch.technique_of(fusion))
        if isinstance(backend, OwnHybridBackend)
        else None
    )
    if server_scores is not None:
        passages, warnings = complete_scores(backend, index, request, list(server_scores))
        answer = Retrieved(passages, "the server's hybrid query", warnings)
        return _replace_scores(passages, server_scores), {
            **answer.actions,
            "fused by": "the server",
        }
    answer = retrieve(backend, index, request)
    actions = {**answer.actions, "fused by": "this library, by the server's arithmetic"}
    return _score_here(answer.passages, request, alpha, fusion), actions


def _score_here(
    passages: list[ScoredPassage], request: Request, alpha: float, fusion: str
) -> list[ScoredPassage]:
    """Return the passages of either leg with scores by the server's arithmetic."""
    ranked = fuse(passages, request, "rrf", alpha, Calibration())  # only for the legs' ranks
    lexical = sorted(filter(_bm25_rank, ranked), key=_bm25_rank)
    semantic = sorted(filter(_cosine_rank, ranked), key=_cosine_rank)
    legs = (
        [(passage.stored.key, passage.stored.bm25) for passage in lexical],
        [(item.stored.key, opensearch.score_from_cosine(item.cosine)) for item in semantic],
    )
    scores, bm25_parts, span_parts = (
        dict(opensearch.fuse_by_alpha(*legs, weight, fusion)) for weight in (alpha, 0.0, 1.0)
    )
    return [
        replace(passage, score=scores[key], parts=(bm25_parts[key], span_parts[key]))
        for passage in ranked
        if (key := passage.stored.key) in scores
    ]


def _bm25_rank(passage: ScoredPassage) -> int:
    return passage.bm25_rank


def _cosine_rank(passage: ScoredPassage) -> int:
    return passage.cosine_rank


def _replace_scores(
    passages: list[ScoredPassage], scores: Mapping[Key, float]
) -> list[ScoredPassage]:
    return [
        replace(passage, score=scores[passage.stored.key])
        for passage in passages
        if passage.stored.key in scores
    ]
