"""The best spans of a single text, found with an encoder and without an index."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.search.calibration import SCORE
from hybrid_search.search.hit import Span
from hybrid_search.search.phrase_vector import query_vector, query_vectors
from hybrid_search.search.query import Query
from hybrid_search.search.types import PassageSpans, Place
from hybrid_search.text import passages, spans
from hybrid_search.text.best_passages import SpanFilter, best_passages
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Document, Turn, list_turns

ENCODE_PASSAGES = 64
"""Number of passages encoded together: enough to sort by length, with bounded memory."""


def search_text(encoder: Encoder, query: Query, text: str | Document, k: int) -> list[Span]:
    """Return the `k` best spans of a text that count for `query`, best first."""
    prior = span_prior(encoder) if query.spans_by == SCORE else None
    span_filter = build_span_filter(encoder, query)
    (phrase,) = query.phrases
    return best_spans(encoder, phrase, text, k, query.context, prior, span_filter)


def best_spans(
    encoder: Encoder,
    phrase: str,
    text: str | Document,
    k: int = 1,
    context: str | None = None,
    prior: SpanPrior | None = None,
    span_filter: SpanFilter | None = None,
) -> list[Span]:
    """Return the `k` best non-overlapping spans of `text`, best first.

    The search is exact: every span of 1..20 words is scored, by its cosine and by `prior` if given.
    A text without a word has no spans. Raises UsageError for a phrase without a word.
    """
    document = Document("", text, (Turn(text),)) if isinstance(text, str) else text
    vector = query_vector(encoder, phrase, context)
    document_passages = list(passages.split(document))
    passage_spans: list[PassageSpans] = []
    for start in range(0, len(document_passages), ENCODE_PASSAGES):
        batch = document_passages[start : start + ENCODE_PASSAGES]
        codes = [
            replace(codes, turns=list_turns(document, passage))
            for passage, codes in zip(batch, encode_passages(encoder, document, batch), strict=True)
        ]
        best = best_passages(vector, dict(enumerate(codes)), span_filter=span_filter)
        for number, cosines in sorted(best.cosines.items()):
            priors = prior.score_spans(codes[number]) if prior else None
            passage_spans.append(
                PassageSpans.from_passage(batch[number].start, codes[number], cosines, priors)
            )
    return [_build_span(document, place) for place in best_places(passage_spans, k)]


def build_span_filter(encoder: Encoder, query: Query) -> SpanFilter | None:
    """Return a filter for the spans that count for `query`, None if all do."""
    if not query.speaker and not query.not_:
        return None
    return SpanFilter(query.speaker, query_vectors(encoder, query.not_))


def _build_span(document: Document, place: Place) -> Span:
    """Return the span at a place in a document."""
    start, end = place.start, place.end
    number = bisect_right(document.turns, start, key=lambda turn: turn.start) - 1
    turn = document.turns[number]
    return Span(
        start,
        end,
        document.text[start:end],
        place.cosine,
        number,
        start - turn.start,
        end - turn.start,
        speaker=turn.speaker,
        prior=place.prior,
        start_ms=turn.start_ms,
        end_ms=turn.end_ms,
    )


def best_places(passage_spans: Sequence[PassageSpans], k: int) -> Iterator[Place]:
    """Yield the `k` best non-overlapping spans of a document's passages, best first."""
    if not passage_spans:
        return
    cosines = np.concatenate([passage.cosines for passage in passage_spans])
    starts = np.concatenate([passage.starts for passage in passage_spans])
    ends = np.concatenate([passage.ends for passage in passage_spans])
    scores = np.concatenate([passage.scores for passage in passage_spans])
    counts = [len(passage.cosines) for passage in passage_spans]
    owners = np.repeat(np.arange(len(passage_spans)), counts)
    for number in spans.best(scores, starts, ends, k):
        owner, start, end, cosine = (
            column[number].item() for column in (owners, starts, ends, cosines)
        )
        prior = (scores[number] - cosines[number]).item()  # NaN for spans that do not count
        yield Place(owner, start, end, cosine, prior)
