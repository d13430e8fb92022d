"""What a system of the papers' tables can do: score pairs of texts, give a text a vector, or give
every span of a text one from a single pass.
"""

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
    """BM25, an edit distance: no vectors."""

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """How alike each query and the text beside it are, float32 ``[queries]``; higher is more
        alike, on a scale of its own.
        """
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """Cosines of its vectors say how alike two texts are."""

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """The unit vector of each text, read by itself, float32 ``[texts, dimension]``; zeros for a
        text without a token.
        """
        ...


@runtime_checkable
class SpanEncoder(TextEncoder, Protocol):
    """Gives a span the vector that it has in its context, too."""

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """For each text, in order, the unit vectors of its `places`, float32 ``[places,
        dimension]``, all from one pass over the text.

        Zeros for a place without a token.
        """
        ...


System = Scorer | TextEncoder | SpanEncoder
"""Each evaluation takes the set-ups that a system is able to: ``isinstance`` tells."""


class TokenMeans:
    """An encoder of the product as a system: what a text or a span means is the mean of its tokens,
    special ones left out.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """The mean of each text's tokens."""
        return means(self.encoder, texts)

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """The mean of each span's tokens."""
        for encoding, ranges in zip(encodings(self.encoder, texts), places, strict=True):
            yield span_means(encoding, ranges)


def encodings(
    encoder: Encoder, texts: Sequence[str], batch_size: int = TEXTS // 16
) -> Iterator[Encoding]:
    """Each text encoded, `together` at a time: token vectors of 128 passages are some 30 MB."""
    for start in range(0, len(texts), batch_size):
        yield from encoder.encode(texts[start : start + batch_size])


def span_means(encoding: Encoding, ranges: Sequence[Range]) -> Floats:
    """The unit mean of the tokens that overlap each range, float32 ``[ranges, dimension]``."""
    bounds = token_ranges(encoding, ranges)
    sums = spans.running_sums(encoding.vectors)
    return normalize_rows(sums[bounds[:, 1]] - sums[bounds[:, 0]])


def token_ranges(encoding: Encoding, ranges: Sequence[Range]) -> Ints:
    """First token and the token after the last of each range, int32 ``[ranges, 2]``, by overlap of
    characters.
    """
    return spans.token_bounds(encoding.offsets, np.array(ranges, dtype=np.int32).reshape(-1, 2))


def normalize_rows(vectors: Floats) -> Floats:
    """Rows of length 1; rows of zeros stay so."""
    unit_rows: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit_rows
