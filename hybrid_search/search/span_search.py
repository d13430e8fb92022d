"""Find the best spans of a single text, which takes an encoder and no index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search.encoder.base import Encoder
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.search import parameters
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.result import Span
from hybrid_search.search.types import PassageSpans, Place
from hybrid_search.text import passages, spans, token_codes
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Document, Turn

ENCODE_PASSAGES = 64
"""Passages encoded together: enough to sort by length, and bounded memory for any text."""


def best_spans(
    encoder: Encoder,
    phrase: str,
    text: str,
    k: int = 1,
    context: str | None = None,
    prior: SpanPrior | None = None,
) -> list[Span]:
    """Return the `k` best spans of `text` that do not overlap, best first.

    Exact: every span of 1..20 words is scored, by its cosine and by `prior` if there is one. A text
    without a word has no span. A value that is not allowed, and a phrase without a word, are a
    UsageError.
    """
    parameters.check_phrase("phrase", phrase)
    parameters.check_text("text", text)
    parameters.check_integer("k", k, 1)
    parameters.check_context("context", context)
    query = query_vector(encoder, phrase, context)
    document = Document("", text, (Turn(text),))
    document_passages = list(passages.split(document))
    passage_spans: list[PassageSpans] = []
    for start in range(0, len(document_passages), ENCODE_PASSAGES):
        batch = document_passages[start : start + ENCODE_PASSAGES]
        batch_codes = encode_passages(encoder, document, batch)
        batch_cosines = token_codes.span_cosines_by_passage(query, batch_codes)
        for passage, codes, cosines in zip(batch, batch_codes, batch_cosines, strict=True):
            if cosines is not None:  # None is for damaged codes, which fresh ones are not
                priors = prior.score_spans(codes) if prior else None
                passage_spans.append(
                    PassageSpans.from_passage(passage.start, codes, cosines, priors)
                )
    return [_build_span(text, place) for place in best_places(passage_spans, k)]


def _build_span(text: str, place: Place) -> Span:
    """Return the span at a place of a text that is a single turn."""
    start, end = place.start, place.end
    return Span(start, end, text[start:end], place.cosine, 0, start, end, prior=place.prior)


def best_places(passage_spans: Sequence[PassageSpans], k: int) -> list[Place]:
    """Return the `k` best spans of a document's passages that do not overlap, best first."""
    if not passage_spans:
        return []
    cosines = np.concatenate([passage.cosines for passage in passage_spans])
    starts = np.concatenate([passage.starts for passage in passage_spans])
    ends = np.concatenate([passage.ends for passage in passage_spans])
    scores = np.concatenate([passage.scores for passage in passage_spans])
    counts = [len(passage.cosines) for passage in passage_spans]
    owners = np.repeat(np.arange(len(passage_spans)), counts)
    best = spans.best(scores, starts, ends, k)
    columns = [column[best] for column in (owners, starts, ends, cosines)]
    columns.append(scores[best] - cosines[best])  # of spans that do not count it is no number
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Place(*row) for row in rows]
