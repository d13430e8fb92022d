"""The scores of a query: candidates of both legs, every score of each completed, and the two fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Candidates, Key, Request, StoredPassage
from hybrid_search.search import fusion
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.fusion.base import Legs, Ranks, Scores
from hybrid_search.text import token_codes
from hybrid_search.text.types import Floats
from hybrid_search.text.words import query_terms


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPassage:
    """A passage with everything that made its score: the `request` that found it, `cosines` float32
    ``[spans]`` and `cosine`, the best of them.

    `parts` are what BM25 and spans count alone (the score at alpha 0 and at alpha 1), `terms` the
    phrase's number of distinct terms.
    """

    stored: StoredPassage
    request: Request
    cosines: Floats
    cosine: float
    score: float = 0.0
    bm25_rank: int = 0
    cosine_rank: int = 0
    parts: tuple[float, float] = (0.0, 0.0)
    terms: int = 0

    @property
    def sort_key(self) -> tuple[float, float, str, int]:
        """A total order: by score, then cosine, then id and place."""
        return -self.score, -self.cosine, self.stored.document_id, self.stored.ordinal


def retrieve(backend: Backend, index: str, request: Request) -> tuple[list[ScoredPassage], str]:
    """Candidates of both legs with both scores of each completed, not yet fused; and how the span
    leg was run.
    """
    candidates = backend.find_candidates(index, request)
    return complete_scores(
        backend, index, request, [*candidates.lexical, *candidates.semantic], candidates
    ), candidates.method


def complete_scores(
    backend: Backend,
    index: str,
    request: Request,
    keys: Sequence[Key],
    candidates: Candidates | None = None,
) -> list[ScoredPassage]:
    """The passages of `keys`, each once, with their BM25 score and the cosines of all their spans."""
    stored = backend.complete_candidates(index, request, list(dict.fromkeys(keys)), candidates)
    cosines = list(
        token_codes.span_cosines_by_passage(request.vector, [passage.tokens for passage in stored])
    )
    best = [
        float(passage_cosines.max()) if len(passage_cosines) else 0.0 for passage_cosines in cosines
    ]
    return [
        ScoredPassage(*values)
        for values in zip(stored, repeat(request), cosines, best, strict=False)
    ]


def fuse(
    passages: Sequence[ScoredPassage],
    request: Request,
    name: str,
    alpha: float,
    calibration: Calibration,
) -> list[ScoredPassage]:
    """`scored` with the fused score, its two parts and both ranks."""
    bm25 = np.array([passage.stored.bm25 for passage in passages])
    cosine = np.array([passage.cosine for passage in passages])
    ids = [(passage.stored.document_id, passage.stored.ordinal) for passage in passages]
    ranks = [rank_scores(scores, ids, request.window) for scores in (bm25, cosine)]
    ranks[0][bm25 <= 0] = 0
    for leg, requested in zip(ranks, (request.lexical, request.semantic), strict=True):
        leg *= requested  # what a leg was not asked for has no rank in it
    terms = len(query_terms(request.phrase))
    legs = Legs(bm25, cosine, ranks[0], ranks[1], terms, calibration)
    values = zip(
        passages,
        *(fusion.get_fusion(name)(legs, weight) for weight in (alpha, 0.0, 1.0)),
        *ranks,
        strict=True,
    )
    return [
        replace(
            passage,
            score=float(score),
            parts=(float(lexical), float(semantic)),
            bm25_rank=int(first),
            cosine_rank=int(second),
            terms=terms,
        )
        for passage, score, lexical, semantic, first, second in values
    ]


def rank_scores(scores: Scores, ids: Sequence[tuple[str, int]], window: int) -> Ranks:
    """Ranks from 1, by score and then by id; 0 beyond `window`."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], ids[number]))
    ranks[order[:window]] = np.arange(1, min(window, len(order)) + 1)
    return ranks
