"""The best span of short texts for many phrases, from the word codes that an index would store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.vectors import TEXTS, cosines_with_many, scale_to_unit
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import codebook, span_prior
from hybrid_search.encoder.passage_codes import encoder_texts, pack_word_codes
from hybrid_search.search.types import Scores
from hybrid_search.text import passages
from hybrid_search.text.residual_codes import DEFAULT_BITS
from hybrid_search.text.types import Document, Encoding, Floats, Passage, Turn, WordCodes

BITS = DEFAULT_BITS
"""Bits of a number of a stored vector."""


@dataclass(frozen=True, slots=True, eq=False)
class TextScores:
    """How well texts fit unit queries, each float64 ``[texts, queries]``.

    `span` is the score of the best span, cosine and prior together; `cosine` the best cosine of a
    span; `mean` the cosine of one vector a text. Without a word the first two are -1.
    """

    span: Scores
    cosine: Scores
    mean: Scores


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """The passages of a text as codes, and the encodings of their parts."""

    codes: Sequence[WordCodes]
    encodings: Sequence[Encoding]


def score_texts(encoder: Encoder, texts: Sequence[str], queries: Floats) -> TextScores:
    """Return the scores of texts, each by itself; a model without a prior has two alike."""
    prior = span_prior(encoder)
    scores = TextScores(*(np.full((len(texts), len(queries)), -1.0) for _ in range(3)))
    for start in range(0, len(texts), TEXTS):
        encoded_texts = encode_texts(encoder, texts[start : start + TEXTS])
        for row, encoded in enumerate(encoded_texts, start):
            scores.mean[row] = queries @ mean(encoded.encodings, queries.shape[1])
            for codes in encoded.codes:
                cosines = cosines_with_many(queries, codes)
                priors = prior.score_spans(codes)[:, None] if prior else 0.0
                for table, values in ((scores.cosine, cosines), (scores.span, cosines + priors)):
                    table[row] = np.maximum(table[row], values.max(axis=0, initial=-1.0))
    return scores


def encode_texts(encoder: Encoder, texts: Sequence[str]) -> Iterator[EncodedText]:
    """Yield each text as the product would store it, all of them encoded together."""
    documents = [Document("", text, (Turn(text),)) for text in texts]
    passages_by_text = [list(passages.split(document)) for document in documents]
    parts = [
        encoder_texts(document, text_passages)
        for document, text_passages in zip(documents, passages_by_text, strict=True)
    ]
    remaining = iter(encoder.encode([text for text_parts in parts for text in text_parts]))
    for text, text_passages, text_parts in zip(texts, passages_by_text, parts, strict=True):
        encodings = [next(remaining) for _ in text_parts]
        yield EncodedText(_pack(encoder, text, text_passages, encodings), encodings)


def _pack(
    encoder: Encoder,
    text: str,
    text_passages: Sequence[Passage],
    encodings: Sequence[Encoding],
) -> list[WordCodes]:
    passage_texts = [text[passage.start : passage.end] for passage in text_passages]
    used, prior = codebook(encoder), span_prior(encoder)
    return pack_word_codes(passage_texts, text_passages, encodings, used, BITS, prior)


def mean(encodings: Sequence[Encoding], dimension: int) -> Floats:
    """Return the unit mean of all tokens of a text's parts; zeros without a token."""
    summed = np.zeros(dimension, dtype=np.float32)
    for encoding in encodings:
        summed += encoding.vectors.sum(axis=0)
    return scale_to_unit(summed)
