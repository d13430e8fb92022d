"""compat="opensearch": a query ranked as the server's own ``hybrid`` query ranks it, by the server where it can, else by its arithmetic here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybrid_search import compat
from hybrid_search.backends.base import Backend, Key, Request
from hybrid_search.calibration import Calibration
from hybrid_search.scoring import Scored, completed, fuse, retrieve

COMPATS = (None, "opensearch")


def technique(name: str | None, fusion: str) -> str | None:
    """What the server calls a fusion; None where `name`, a compat, asks for none of its own."""
    return compat.technique_of(fusion) if name else None


def scored(backend: Backend, index: str, request: Request, alpha: float, fusion: str) -> tuple[list[Scored], dict[str, Any]]:
    """Passages with the scores of the server's ``hybrid`` query, and what computed them."""
    request = replace(request, lexical=True, semantic=True)  # the server asks a leg of weight 0, too
    fused = backend.hybrid(index, request, alpha, compat.technique_of(fusion))
    if fused is not None:
        found = completed(backend, index, request, list(fused))
        return _scored(found, fused), {"candidates": "the server's hybrid query", "fused by": "the server"}
    found, method = retrieve(backend, index, request)
    ranked = fuse(found, request, "rrf", alpha, Calibration())  # for the ranks, which are those of the legs
    lexical = sorted((each for each in ranked if each.bm25_rank), key=lambda each: each.bm25_rank)
    semantic = sorted((each for each in ranked if each.cosine_rank), key=lambda each: each.cosine_rank)
    legs = [(each.stored.key, each.stored.bm25) for each in lexical], [(each.stored.key, compat.of_cosine(each.cosine)) for each in semantic]
    scores, *parts = (dict(compat.fused(*legs, weight, fusion)) for weight in (alpha, 0.0, 1.0))
    ranked = [replace(each, parts=(parts[0][each.stored.key], parts[1][each.stored.key])) for each in ranked if each.stored.key in scores]
    return _scored(ranked, scores), {"candidates": method, "fused by": "this library, by the server's arithmetic"}


def _scored(found: list[Scored], scores: Mapping[Key, float]) -> list[Scored]:
    return [replace(each, score=scores[each.stored.key]) for each in found if each.stored.key in scores]
