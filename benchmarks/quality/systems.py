"""Protocols of measured systems: they score pairs of texts, or encode texts or spans of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from benchmarks.quality.vectors import TEXTS, means
from hybrid_search.encoder import Encoder
from hybrid_search.text import spans
from hybrid_search.text.types import Encoding, Floats, Ints

Range = tuple[int, int]
"""Start and end in a text, in code points."""


@runtime_checkable
class Scorer(Protocol):
    """A system without vectors, like BM25 or an edit distance."""

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return how alike each query and the text beside it are, float32 ``[queries]``.

        Higher is more alike, on a scale of its own.
        """
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """A system whose vectors tell by their cosines how alike two texts are."""

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return the unit vector of each text, read by itself, float32 ``[texts, dimension]``.

        Zeros for a text without a token.
        """
        ...


@runtime_checkable
class SpanEncoder(TextEncoder, Protocol):
    """A text encoder that also gives a span its vector in its context."""

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """Yield, for each text in order, the unit vectors of its `places`.

        float32 ``[places, dimension]``, all from one pass over the text; zeros for a place without
        a token.
        """
        ...


System = Scorer | TextEncoder | SpanEncoder
"""Each evaluation uses the set-ups that a system supports: ``isinstance`` tells."""


class TokenMeans:
    """An encoder of the product as a system: a text or span is the mean of its tokens.

    Special tokens are left out.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return the mean of each text's tokens."""
        return means(self.encoder, texts)

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """Yield the mean of each span's tokens."""
        for encoding, ranges in zip(encodings(self.encoder, texts), places, strict=True):
            yield span_means(encoding, ranges)


def encodings(
    encoder: Encoder, texts: Sequence[str], batch_size: int = TEXTS // 16
) -> Iterator[Encoding]:
    """Yield each text encoded, `batch_size` at a time.

    Token vectors of 128 passages are about 30 MB.
    """
    for start in range(0, len(texts), batch_size):
        yield from encoder.encode(texts[start : start + batch_size])


def span_means(encoding: Encoding, ranges: Sequence[Range]) -> Floats:
    """Return the unit mean of the tokens over each range, float32 ``[ranges, dimension]``."""
    bounds = token_ranges(encoding, ranges)
    sums = spans.running_sums(encoding.vectors)
    return normalize_rows(sums[bounds[:, 1]] - sums[bounds[:, 0]])


def token_ranges(encoding: Encoding, ranges: Sequence[Range]) -> Ints:
    """Return first token and the token after the last of each range, int32 ``[ranges, 2]``.

    By overlap of characters.
    """
    return spans.token_bounds(encoding.offsets, np.array(ranges, dtype=np.int32).reshape(-1, 2))


def normalize_rows(vectors: Floats) -> Floats:
    """Return the rows at length 1; rows of zeros stay zeros."""
    unit_rows: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit_rows
