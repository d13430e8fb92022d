"""The scores of a query: candidates of both legs, every score of each completed, and the two fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from hybrid_search import fusion, tokens
from hybrid_search.backends.base import Backend, Candidates, Key, Request, Stored
from hybrid_search.calibration import Calibration
from hybrid_search.fusion.base import Legs, Ranks, Scores
from hybrid_search.types import Floats
from hybrid_search.words import query_terms


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A passage with everything that made its score: the `request` that found it, `cosines` float32 ``[spans]`` and `cosine`, the best of them.

    `parts` are what BM25 and spans count alone (the score at alpha 0 and at alpha 1), `terms` the phrase's number of distinct terms.
    """

    stored: Stored
    request: Request
    cosines: Floats
    cosine: float
    score: float = 0.0
    bm25_rank: int = 0
    cosine_rank: int = 0
    parts: tuple[float, float] = (0.0, 0.0)
    terms: int = 0

    @property
    def order(self) -> tuple[float, float, str, int]:
        """A total order: by score, then cosine, then id and place."""
        return -self.score, -self.cosine, self.stored.document_id, self.stored.ordinal


def retrieve(backend: Backend, index: str, request: Request) -> tuple[list[Scored], str]:
    """Candidates of both legs with both scores of each completed, not yet fused; and how the span leg was run."""
    found = backend.candidates(index, request)
    return completed(backend, index, request, [*found.lexical, *found.semantic], found), found.method


def completed(backend: Backend, index: str, request: Request, keys: Sequence[Key], found: Candidates | None = None) -> list[Scored]:
    """The passages of `keys`, each once, with their BM25 score and the cosines of all their spans."""
    stored = backend.complete(index, request, list(dict.fromkeys(keys)), found)
    cosines = list(tokens.cosines_of_each(request.vector, [each.tokens for each in stored]))
    best = [float(each.max()) if len(each) else 0.0 for each in cosines]
    return [Scored(*each) for each in zip(stored, repeat(request), cosines, best, strict=False)]


def fuse(scored: Sequence[Scored], request: Request, name: str, alpha: float, calibration: Calibration) -> list[Scored]:
    """`scored` with the fused score, its two parts and both ranks."""
    bm25 = np.array([each.stored.bm25 for each in scored])
    cosine = np.array([each.cosine for each in scored])
    ids = [(each.stored.document_id, each.stored.ordinal) for each in scored]
    ranks = [ranked(scores, ids, request.window) for scores in (bm25, cosine)]
    ranks[0][bm25 <= 0] = 0
    for leg, asked in zip(ranks, (request.lexical, request.semantic), strict=True):
        leg *= asked  # what a leg was not asked for has no rank in it
    terms = len(query_terms(request.phrase))
    legs = Legs(bm25, cosine, ranks[0], ranks[1], terms, calibration)
    values = zip(scored, *(fusion.fusion(name)(legs, weight) for weight in (alpha, 0.0, 1.0)), *ranks, strict=True)
    return [
        replace(each, score=float(score), parts=(float(lexical), float(semantic)), bm25_rank=int(first), cosine_rank=int(second), terms=terms)
        for each, score, lexical, semantic, first, second in values
    ]


def ranked(scores: Scores, ids: Sequence[tuple[str, int]], window: int) -> Ranks:
    """Ranks from 1, by score and then by id; 0 beyond `window`."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], ids[number]))
    ranks[order[:window]] = np.arange(1, min(window, len(order)) + 1)
    return ranks
