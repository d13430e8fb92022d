"""Mean vectors, all spans and token counts by the product's `Encoder`, for all evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hybrid_search.encoder import Encoder, EncoderInfo
from hybrid_search.encoder.base import codebook, span_prior
from hybrid_search.search.types import PassageSpans
from hybrid_search.text import codebook as codebooks
from hybrid_search.text import spans, word_vectors
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.spans import Index
from hybrid_search.text.types import Codebook, Encoding, Floats, Ints, WordCodes
from hybrid_search.text.words import words

TEXTS = 2048
"""Short texts encoded at once: enough to sort by length, within bounded memory."""


class MeteredEncoder:
    """An encoder that counts the `texts` and the `tokens` it encodes, special tokens left out."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.texts = self.tokens = 0

    @property
    def info(self) -> EncoderInfo:
        """The info of the wrapped encoder."""
        return self.encoder.info

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the prior of the wrapped encoder, if it has one."""
        return span_prior(self.encoder, dimension)

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the codebook of the wrapped encoder."""
        return codebook(self.encoder, dimension)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """See `Encoder.encode`."""
        encoded = self.encoder.encode(texts)
        self.texts += len(encoded)
        self.tokens += sum(len(encoding.offsets) for encoding in encoded)
        return encoded


def means(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Return the unit mean of each text's tokens, float32 ``[texts, dimension]``.

    The product's query vector, for many texts; zeros for a text without a token.
    """
    vectors = np.zeros((len(texts), encoder.info.dimension), dtype=np.float32)
    for start in range(0, len(texts), TEXTS):
        for row, encoding in enumerate(encoder.encode(texts[start : start + TEXTS]), start):
            vectors[row] = mean(encoding)
    return vectors


def mean(encoding: Encoding) -> Floats:
    """Return the unit mean of all tokens, float32 ``[dimension]``; zeros without tokens."""
    return scale_to_unit(encoding.vectors.sum(axis=0))


def scale_to_unit(vector: Floats) -> Floats:
    """Return `vector` at unit length; zeros stay zeros."""
    unit: Floats = vector / np.float32(max(float(np.linalg.norm(vector)), 1e-12))
    return unit


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """All spans of 1 to 20 whole words of a text, in float32.

    Nothing is stored: the product codes tokens to int8, which moves a cosine by .001.

    `vectors` float32 ``[tokens, dimension]``, `words` int32 ``[words, 2]`` in characters, `tokens`
    int32 ``[words, 2]``; `first` and `last` are the words of each span, intp ``[spans]``, and
    `inverse` float32 ``[spans]`` one over the length of its summed vectors.
    """

    vectors: Floats
    words: Ints
    tokens: Ints
    first: Index
    last: Index
    inverse: Floats

    @classmethod
    def from_encoding(cls, text: str, encoding: Encoding) -> Self:
        """Return the spans of `text`, encoded by itself."""
        word_places = words(text)
        counts, tokens = (
            spans.counts(len(word_places), len(word_places)),
            spans.token_bounds(encoding.offsets, word_places),
        )
        inverse = spans.inverse(spans.norms(encoding.vectors, tokens, counts))
        return cls(encoding.vectors, word_places, tokens, *spans.bounds(counts), inverse)

    def __len__(self) -> int:
        return len(self.first)

    def cosines(self, queries: Floats) -> Floats:
        """Return the cosine of each span with each unit query, float32 ``[spans, queries]``.

        `queries` are float32 ``[queries, dimension]``.
        """
        sums = spans.running_sums(self.vectors @ queries.T)
        span_cosines: Floats = (
            sums[self.tokens[self.last, 1]] - sums[self.tokens[self.first, 0]]
        ) * self.inverse[:, None]
        return span_cosines

    def piece(self, query: Floats, start: int) -> PassageSpans:
        """Return the cosine of one unit query with each span, and the span's place.

        Places are counted from `start`.
        """
        places = (
            self.words[self.first, 0] + np.int32(start),
            self.words[self.last, 1] + np.int32(start),
        )
        return PassageSpans(self.cosines(query[None])[:, 0], *places)

    @property
    def length(self) -> int:
        """Tokens of all spans together, special tokens left out.

        Encoding every span by itself would take that many.
        """
        return int((self.tokens[self.last, 1] - self.tokens[self.first, 0]).sum())


def cosines_with_many(queries: Floats, codes: WordCodes) -> Floats:
    """Return the cosine of every span with each of some unit queries, float32 ``[spans, queries]``.

    `queries` are float32 ``[queries, dimension]``.
    """
    products = word_vectors.decode_turned(codes) @ codebooks.turn(queries).T
    sums = spans.running_sums(products)
    first, last = spans.bounds(codes.counts)
    found: Floats = sums[codes.rows[last] + 1] - sums[codes.rows[first]]
    found *= word_vectors.inverse_norms(codes)[:, None]
    return np.clip(found, -1.0, 1.0, out=found)
