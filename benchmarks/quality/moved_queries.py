"""Feedback among short texts: queries moved to the best spans of the texts that they found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.quality.span_scores import encode_texts
from hybrid_search.backends.types import Request, StoredPassage
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.query import WINDOW
from hybrid_search.search.types import ScoredPassage, Scores
from hybrid_search.text import word_codes
from hybrid_search.text.types import Floats, WordCodes

TEXTS = 10
"""Texts whose best spans move a query: what the documentation calls usual."""


def move_queries(encoder: Encoder, texts: Sequence[str], queries: Floats, scores: Scores) -> Floats:
    """Return unit queries as the product moves them, float32 ``[queries, dimension]``.

    Args:
        encoder: Encodes the texts.
        texts: What was searched, each a document.
        queries: Unit vectors, float32 ``[queries, dimension]``.
        scores: The score of each text's best span, float64 ``[texts, queries]``.
    """
    best_rows = np.argsort(-scores, axis=0, kind="stable")[:TEXTS]
    rows = np.unique(best_rows).tolist()
    encoded = encode_texts(encoder, [texts[row] for row in rows])
    codes = {row: text.codes[0] for row, text in zip(rows, encoded, strict=True) if text.codes}
    prior = span_prior(encoder)
    moved = []
    for number, query in enumerate(queries):
        request = Request("", query, WINDOW, prior=prior)
        own_rows = [row for row in best_rows[:, number].tolist() if row in codes]
        passages = [_score(request, row, codes[row], scores[row, number]) for row in own_rows]
        moved.append(add_feedback(request, passages, TEXTS).vector)
    return np.array(moved, dtype=np.float32)


def _score(request: Request, row: int, codes: WordCodes, score: float) -> ScoredPassage:
    """Return the only passage of a short text, at the score that its text is ranked by."""
    cosines = word_codes.cosines(request.vector, codes)
    stored = StoredPassage(row, str(row), 0, 0.0, codes)
    return ScoredPassage(stored, request, cosines, 0.0, score, score=score)
