"""compat="opensearch": a query ranked as the server's own ``hybrid`` query ranks it, by the server
where it can, else by its arithmetic here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybrid_search.backends.base import Backend, OwnHybridBackend
from hybrid_search.backends.types import Key, Request
from hybrid_search.search import opensearch
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import ScoredPassage, complete_scores, fuse, retrieve

COMPATS = (None, "opensearch")


def technique(name: str | None, fusion: str) -> str | None:
    """What the server calls a fusion; None where `name`, a compat, asks for none of its own."""
    return opensearch.technique_of(fusion) if name else None


def score_as_server(
    backend: Backend, index: str, request: Request, alpha: float, fusion: str
) -> tuple[list[ScoredPassage], dict[str, Any]]:
    """Passages with the scores of the server's ``hybrid`` query, and what computed them."""
    request = replace(
        request, lexical=True, semantic=True
    )  # the server asks a leg of weight 0, too
    server_scores = (
        backend.fetch_hybrid_scores(index, request, alpha, opensearch.technique_of(fusion))
        if isinstance(backend, OwnHybridBackend)
        else None
    )
    if server_scores is not None:
        passages = complete_scores(backend, index, request, list(server_scores))
        return _replace_scores(passages, server_scores), {
            "candidates": "the server's hybrid query",
            "fused by": "the server",
        }
    passages, method = retrieve(backend, index, request)
    ranked = fuse(
        passages, request, "rrf", alpha, Calibration()
    )  # for the ranks, which are those of the legs
    lexical = sorted(
        (passage for passage in ranked if passage.bm25_rank), key=lambda passage: passage.bm25_rank
    )
    semantic = sorted(
        (passage for passage in ranked if passage.cosine_rank),
        key=lambda passage: passage.cosine_rank,
    )
    legs = (
        [(passage.stored.key, passage.stored.bm25) for passage in lexical],
        [
            (passage.stored.key, opensearch.score_from_cosine(passage.cosine))
            for passage in semantic
        ],
    )
    scores, *parts = (
        dict(opensearch.fuse_by_alpha(*legs, weight, fusion)) for weight in (alpha, 0.0, 1.0)
    )
    ranked = [
        replace(passage, parts=(parts[0][passage.stored.key], parts[1][passage.stored.key]))
        for passage in ranked
        if passage.stored.key in scores
    ]
    return _replace_scores(ranked, scores), {
        "candidates": method,
        "fused by": "this library, by the server's arithmetic",
    }


def _replace_scores(
    passages: list[ScoredPassage], scores: Mapping[Key, float]
) -> list[ScoredPassage]:
    return [
        replace(passage, score=scores[passage.stored.key])
        for passage in passages
        if passage.stored.key in scores
    ]
