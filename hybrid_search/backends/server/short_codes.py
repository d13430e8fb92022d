"""Short codes of a passage on a server: from them the cosine of its best span is estimated.

The token codes of a passage take some 33 KB of an answer, in base64, and its short codes 7. They
have each word's vector in two bits a number, its length, and the inverse lengths of the spans of a
few sizes that begin there. So running sums give the cosines of these spans, as they do in the exact
step (`text.spans`), but for the rounding. An error can only leave a passage out, and never changes
a score.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.server import two_bit_codes
from hybrid_search.text import spans, token_codes
from hybrid_search.text.types import Bytes, Floats, TokenCodes

SPAN_WORDS = (1, 2, 3, 4, 6, 8)
"""The sizes of the spans that are estimated."""

STEPS = 32
"""Steps of a rounded length in an octave: it is off by at most 1.1%."""

MIDDLE = 128
"""The code of the length 1; 0 is that of no length."""

_HEADER = struct.Struct("<4sHH")
_MAGIC = b"HSS2"


@dataclass(frozen=True, slots=True, eq=False)
class ShortCodes:
    """The short codes of one passage.

    Attributes:
        codes: uint8 ``[words, bytes]``: the directions of the words' vectors, as `two_bit_codes`
            has them.
        lengths: uint8 ``[words, 1 + len(SPAN_WORDS)]``: the rounded length of a word's vector in
            units of what its codes stand for, and the inverse lengths of the spans of `SPAN_WORDS`
            words that begin at the word; 0 where there is no such span.
    """

    codes: Bytes
    lengths: Bytes

    def fit(self, query: Floats) -> bool:
        """Return whether the codes are of vectors as long as `query`."""
        return bool(self.codes.shape[1] == two_bit_codes.count_bytes(len(query)))


def shorten(tokens: TokenCodes) -> ShortCodes:
    """Return the short codes of a passage; its token codes must be sound."""
    sums = spans.running_sums(token_codes.vectors(tokens))
    first, after = tokens.words[:, 2], tokens.words[:, 3]
    word_vectors = sums[after] - sums[first]
    lengths = _lengths(word_vectors)
    codes = two_bit_codes.encode(word_vectors * spans.inverse(lengths)[:, None])
    columns = [_round_lengths(lengths / two_bit_codes.measure_lengths(codes, sums.shape[1]))]
    for size in SPAN_WORDS:
        starts = np.flatnonzero(tokens.counts >= size)
        span_lengths = _lengths(sums[after[starts + size - 1]] - sums[first[starts]])
        column = np.zeros(len(tokens.words), np.uint8)
        column[starts] = _round_lengths(spans.inverse(span_lengths))
        columns.append(column)
    return ShortCodes(codes, np.stack(columns, axis=1))


def to_bytes(short_codes: ShortCodes) -> bytes:
    """Return short codes as one binary field.

    A header with magic, words and bytes a word comes first, then codes and lengths.
    """
    header = _HEADER.pack(_MAGIC, *short_codes.codes.shape)
    return header + short_codes.codes.tobytes() + short_codes.lengths.tobytes()


def read(data: bytes) -> ShortCodes | None:
    """Return the short codes that `to_bytes` wrote, or None if `data` is anything else.

    So short codes of earlier versions are not read.
    """
    if len(data) < _HEADER.size:
        return None
    magic, words, word_bytes = _HEADER.unpack_from(data)
    lengths_at = _HEADER.size + words * word_bytes
    columns = 1 + len(SPAN_WORDS)
    if magic != _MAGIC or len(data) != lengths_at + words * columns:
        return None
    return ShortCodes(
        np.ndarray((words, word_bytes), np.uint8, data, _HEADER.size),
        np.ndarray((words, columns), np.uint8, data, lengths_at),
    )


def belong_to(short_codes: ShortCodes, tokens: TokenCodes) -> bool:
    """Return whether short codes are those of sound token codes, but for another rounding."""
    expected = shorten(tokens)
    if short_codes.codes.shape != expected.codes.shape:
        return False
    length_steps = np.abs(short_codes.lengths.astype(np.int16) - expected.lengths)
    return bool(length_steps.max(initial=0) <= 1) and two_bit_codes.are_near(
        short_codes.codes, expected.codes
    )


def estimate_best_cosines(query: Floats, passages: Sequence[ShortCodes]) -> Floats:
    """Return about the cosine of each passage's best span, float32 ``[passages]``.

    It is -1 without a span.

    Args:
        query: A unit vector, float32 ``[dimension]``.
        passages: The short codes of the passages; all must `fit` the query.
    """
    estimates = np.full(len(passages), -1.0, np.float32)
    counts = np.array([len(passage.codes) for passage in passages], np.intp)
    if not counts.any():
        return estimates
    products = two_bit_codes.multiply(np.concatenate([item.codes for item in passages]), query)
    lengths = np.concatenate([passage.lengths for passage in passages])
    best_by_word = _best_by_word(products * _DECODED[lengths[:, 0]], lengths[:, 1:])
    has_words = counts > 0
    starts = (np.cumsum(counts) - counts)[has_words]
    estimates[has_words] = np.maximum.reduceat(best_by_word, starts)
    return estimates


def _best_by_word(products: Floats, inverse_lengths: Bytes) -> Floats:
    """Return the best cosine of the spans that begin at each word, -1 where none does."""
    count = len(products)
    sums = np.zeros(count + max(SPAN_WORDS), np.float64)
    np.cumsum(products, out=sums[1 : count + 1])
    best: Floats = np.full(count, -1.0, np.float32)
    for size, codes in zip(SPAN_WORDS, np.ascontiguousarray(inverse_lengths.T), strict=True):
        scores = (sums[size : size + count] - sums[:count]).astype(np.float32)
        scores *= _DECODED.take(codes)
        scores[codes == 0] = -1
        np.maximum(best, scores, out=best)
    return best


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return lengths


def _round_lengths(lengths: Floats) -> Bytes:
    """Return lengths as codes: the logarithm in `STEPS` an octave, and 0 for no length."""
    with np.errstate(divide="ignore"):
        codes = np.rint(np.log2(lengths) * STEPS + MIDDLE).clip(1, 255)
    return np.where(lengths > 0, codes, 0).astype(np.uint8)


def _decode_lengths() -> Floats:
    lengths = np.exp2((np.arange(256) - MIDDLE) / STEPS).astype(np.float32)
    lengths[0] = 0.0
    return lengths


_DECODED = _decode_lengths()
