"""Feedback: search again with the phrase vector averaged with the best spans found first.

Hardly anybody says "refund request", but the calls it finds contain what people say instead. So the
unit vector of the phrase is averaged with the normalized mean of the best spans of the best
documents, and the index is searched with the result. This finds more paraphrases, but hurts a
question that has one answer.

The method is Rocchio's, "Relevance feedback in information retrieval", 1971. For dense vectors and
unjudged hits: Li et al., "Pseudo Relevance Feedback with Deep Language Models and Dense Retrievers:
Successes and Pitfalls", 2021.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hybrid_search.backends.types import Request
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text import word_codes
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.spans import scale_to_unit
from hybrid_search.text.types import Floats


def add_feedback(request: Request, scored: Iterable[ScoredPassage], documents: int) -> Request:
    """Return `request` with its vector moved halfway to the best spans of its best `documents`.

    `scored` are the fused passages that it found, in any order; a document counts by its best one.
    """
    best = _find_best_passages(scored, documents)
    if not best:
        return request
    spans = np.array([_best_span_vector(passage, request.prior) for passage in best])
    return replace(request, vector=scale_to_unit(request.vector + scale_to_unit(spans.mean(0))))


def _find_best_passages(scored: Iterable[ScoredPassage], documents: int) -> Sequence[ScoredPassage]:
    """Return the best passages of the best documents, leaving out passages without a span."""
    best_by_document: dict[str, ScoredPassage] = {}
    for passage in sorted(scored, key=lambda passage: passage.sort_key):
        if len(passage.cosines):
            best_by_document.setdefault(passage.stored.document_id, passage)
    return list(best_by_document.values())[:documents]


def _best_span_vector(passage: ScoredPassage, prior: SpanPrior | None) -> Floats:
    """Return the unit vector of the span by which a passage is ranked."""
    tokens = passage.stored.tokens
    scores = passage.cosines + prior.score_spans(tokens) if prior else passage.cosines
    return scale_to_unit(word_codes.span_sum(tokens, int(scores.argmax())))
