"""compat="opensearch": a query ranked as the server's own ``hybrid`` query ranks it, by the server where it can, else by its arithmetic here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybrid_search import compat
from hybrid_search.backends.base import Backend, Key, Request
from hybrid_search.calibration import Calibration
from hybrid_search.fusion import DEFAULT
from hybrid_search.scoring import Scored, completed, fuse, retrieve

COMPATS = (None, "opensearch")
MIN_MAX = "min_max"
"""The server's default technique, taken for our own default, which it does not have."""


def technique(fusion: str) -> str:
    """The server's name of a fusion."""
    return MIN_MAX if fusion == DEFAULT else fusion


def scored(backend: Backend, index: str, request: Request, alpha: float, fusion: str) -> tuple[list[Scored], dict[str, Any]]:
    """Passages with the scores of the server's ``hybrid`` query, and what computed them."""
    fused = backend.hybrid(index, request, alpha, technique(fusion))
    if fused is not None:
        found = completed(backend, index, request, list(fused))
        return _scored(found, fused), {"candidates": "the server's hybrid query", "fused by": "the server"}
    found, method = retrieve(backend, index, request)
    ranked = fuse(found, request, "rrf", alpha, Calibration())  # for the ranks, which are those of the legs
    lexical = sorted((each for each in ranked if each.bm25_rank), key=lambda each: each.bm25_rank)
    semantic = sorted((each for each in ranked if each.cosine_rank), key=lambda each: each.cosine_rank)
    scores = compat.fused(
        [(each.stored.key, each.stored.bm25) for each in lexical],
        [(each.stored.key, (1.0 + each.cosine) / 2.0) for each in semantic],
        alpha,
        technique(fusion),
    )
    return _scored(ranked, dict(scores)), {"candidates": method, "fused by": "this library, by the server's arithmetic"}


def _scored(found: list[Scored], scores: Mapping[Key, float]) -> list[Scored]:
    return [replace(each, score=scores[each.stored.key]) for each in found if each.stored.key in scores]
