"""The best spans of a single text: what can be done with an encoder and no index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hybrid_search.encoder.base import Encoder
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.errors import UsageError
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.result import Span
from hybrid_search.text import passages, spans, token_codes
from hybrid_search.text.types import Document, Floats, Ints, TokenCodes, Turn

ENCODE_PASSAGES = 64
"""Passages that go through the encoder together: enough to sort by length, and bounded memory for a
text of any size.
"""


def best_spans(
    encoder: Encoder, phrase: str, text: str, k: int = 1, context: str | None = None
) -> list[Span]:
    """The `k` best spans of `text` that do not overlap, best first.

    Exact: every span of 1..20 words is scored. No word, no span.
    """
    if k < 1:
        raise UsageError(f"k is {k}: ask for at least one span")
    query = query_vector(encoder, phrase, context)
    document = Document("", text, (Turn(text),))
    document_passages, passage_spans = list(passages.split(document)), []
    for start in range(0, len(document_passages), ENCODE_PASSAGES):
        batch = document_passages[start : start + ENCODE_PASSAGES]
        batch_codes = encode_passages(encoder, document, batch)
        scored = zip(
            batch, batch_codes, token_codes.span_cosines_by_passage(query, batch_codes), strict=True
        )
        passage_spans += [
            PassageSpans.from_passage(passage.start, codes, cosines)
            for passage, codes, cosines in scored
        ]
    return [
        Span(start, end, text[start:end], cosine, 0, start, end)
        for _, start, end, cosine in best_places(passage_spans, k)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class PassageSpans:
    """All spans of one passage: `cosines` float32, `starts` and `ends` int32 in code points of the
    document, each ``[spans]``.
    """

    cosines: Floats
    starts: Ints
    ends: Ints

    @classmethod
    def from_passage(cls, start: int, codes: TokenCodes, cosines: Floats) -> Self:
        """Of a passage that begins at `start`."""
        first, last = spans.bounds(codes.counts)
        return cls(
            cosines, codes.words[first, 0] + np.int32(start), codes.words[last, 1] + np.int32(start)
        )


def best_places(passage_spans: Sequence[PassageSpans], k: int) -> list[tuple[int, int, int, float]]:
    """Number of the piece, start, end and cosine of the `k` best spans of a document that do not
    overlap, best first.
    """
    if not passage_spans:
        return []
    cosines, starts, ends = (
        np.concatenate([getattr(passage, name) for passage in passage_spans])
        for name in ("cosines", "starts", "ends")
    )
    owners = np.repeat(
        np.arange(len(passage_spans)), [len(passage.cosines) for passage in passage_spans]
    )
    return [
        (int(owners[i]), int(starts[i]), int(ends[i]), float(cosines[i]))
        for i in spans.best(cosines, starts, ends, k)
    ]
