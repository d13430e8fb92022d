"""Find the candidates of a request, complete both scores of each, and fuse the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Candidates, Key, Request
from hybrid_search.search import fusion
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.types import Legs, Ranks, ScoredPassage, Scores
from hybrid_search.text import token_codes
from hybrid_search.text.words import distinct_words


def retrieve(backend: Backend, index: str, request: Request) -> tuple[list[ScoredPassage], str]:
    """Return the candidates of both legs, not yet fused, and how the span leg was run."""
    candidates = backend.find_candidates(index, request)
    keys = [*candidates.lexical, *candidates.semantic]
    return complete_scores(backend, index, request, keys, candidates), candidates.method


def complete_scores(
    backend: Backend,
    index: str,
    request: Request,
    keys: Sequence[Key],
    candidates: Candidates | None = None,
) -> list[ScoredPassage]:
    """Return the passages of `keys`, once each, with BM25 and the cosines of all their spans."""
    stored = backend.complete_candidates(index, request, list(dict.fromkeys(keys)), candidates)
    cosines = token_codes.span_cosines_by_passage(
        request.vector, [passage.tokens for passage in stored]
    )
    return [
        ScoredPassage(
            passage,
            request,
            passage_cosines,
            float(passage_cosines.max()) if len(passage_cosines) else 0.0,
        )
        for passage, passage_cosines in zip(stored, cosines, strict=True)
    ]


def fuse(
    passages: Sequence[ScoredPassage],
    request: Request,
    name: str,
    alpha: float,
    calibration: Calibration,
) -> list[ScoredPassage]:
    """Return `passages` with the score of the fusion `name`, its two parts and both ranks."""
    legs = _build_legs(passages, request, calibration)
    fuse_legs = fusion.get_fusion(name)
    scores, bm25_parts, span_parts = (
        fuse_legs(legs, weight).tolist() for weight in (alpha, 0.0, 1.0)
    )
    bm25_ranks, cosine_ranks = legs.bm25_rank.tolist(), legs.cosine_rank.tolist()
    return [
        replace(
            passage,
            score=scores[number],
            parts=(bm25_parts[number], span_parts[number]),
            bm25_rank=bm25_ranks[number],
            cosine_rank=cosine_ranks[number],
            terms=legs.terms,
        )
        for number, passage in enumerate(passages)
    ]


def _build_legs(
    passages: Sequence[ScoredPassage], request: Request, calibration: Calibration
) -> Legs:
    """Return both legs' scores and ranks. A leg that was not requested has no ranks."""
    bm25 = np.array([passage.stored.bm25 for passage in passages])
    cosine = np.array([passage.cosine for passage in passages])
    ids = [(passage.stored.document_id, passage.stored.ordinal) for passage in passages]
    bm25_ranks = rank_scores(bm25, ids, request.window)
    bm25_ranks[bm25 <= 0] = 0
    bm25_ranks *= request.lexical
    cosine_ranks = rank_scores(cosine, ids, request.window) * request.semantic
    terms = len(distinct_words(request.phrase))
    return Legs(bm25, cosine, bm25_ranks, cosine_ranks, terms, calibration)


def rank_scores(scores: Scores, ids: Sequence[tuple[str, int]], window: int) -> Ranks:
    """Return ranks from 1, by score and then by id; 0 beyond `window`."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], ids[number]))
    ranks[order[:window]] = np.arange(1, min(window, len(order)) + 1)
    return ranks
