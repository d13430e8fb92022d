"""Joined token codes of many passages, to pay numpy's cost per call only once.

Passages that are read for scoring are joined directly from their stored bytes. Building the arrays
of each passage would take longer than scoring it, and most passages are not needed afterwards.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.types import Bytes, Floats, Ints, TokenCodes

HEADER = struct.Struct("<4sHHIII")
"""Magic, version, dimension, number of words, number of tokens, number of spans."""

MAGIC = b"HST1"
VERSIONS = (1, 2)
"""Version 1 has no boundaries."""

WORDS, COUNTS, CODES, SCALES, NORMS = map(np.dtype, ("<i4", "u1", "i1", "<f4", "<f2"))

FIRST_INFINITE_HALF = 0x7C00
"""The bits of float16 infinity; those of NaN and of negative numbers are larger."""

_HEADERS = np.dtype(
    {
        "names": ("magic", "version", "dimension", "words", "tokens", "spans"),
        "formats": ("S4", "<u2", "<u2", "<u4", "<u4", "<u4"),
    }
)

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class JoinedCodes:
    """Undamaged passages joined into one, and the number of spans of each.

    The words of `tokens` refer to tokens of the joined codes. Their character offsets are
    meaningless.
    """

    tokens: TokenCodes
    span_counts: Sequence[int]

    def split(self, spans: Floats) -> list[Floats]:
        """Split the values of all spans by passage."""
        return split_spans(spans, self.span_counts)


def split_spans(spans: Floats, span_counts: Sequence[int]) -> list[Floats]:
    """Split the values of all spans by passage, given the number of spans of each."""
    ends = np.cumsum([0, *span_counts]).tolist()
    return [spans[first:after] for first, after in pairwise(ends)]


def join_sound(passages: Sequence[TokenCodes], dimension: int) -> JoinedCodes | None:
    """Join the passages, or return None if one of them is damaged."""
    if any(passage.codes.shape[1] != dimension for passage in passages):
        return None
    words = np.concatenate([passage.words for passage in passages])
    counts = np.concatenate([passage.counts for passage in passages])
    codes = np.concatenate([passage.codes for passage in passages])
    scales = np.concatenate([passage.scales for passage in passages])
    norms = np.concatenate([passage.inverse_norms for passage in passages])
    return _check(
        TokenCodes(words, counts, codes, scales, norms),
        [len(passage.words) for passage in passages],
        [len(passage.codes) for passage in passages],
        [len(passage.inverse_norms) for passage in passages],
    )


def join_stored(stored: Sequence[bytes], dimension: int) -> JoinedCodes | None:
    """Join the passages with these `stored` bytes, or return None if one of them is damaged."""
    if min(map(len, stored)) < HEADER.size:
        return None
    headers = np.frombuffer(b"".join([data[: HEADER.size] for data in stored]), _HEADERS)
    sizes = [headers[name].astype(np.int64) for name in ("words", "tokens", "spans")]
    edges = _find_edges(headers, dimension, *sizes)
    if not _are_whole(stored, headers, dimension, edges[-1]):
        return None
    views = [memoryview(data) for data in stored]
    words, counts, codes, scales, norms = (
        b"".join([view[first:after] for view, first, after in zip(views, *bounds, strict=True)])
        for bounds in pairwise(edges[:-1].tolist())
    )
    joined = TokenCodes(
        np.frombuffer(words, WORDS).reshape(-1, 4),
        np.frombuffer(counts, COUNTS),
        np.frombuffer(codes, CODES).reshape(-1, dimension),
        np.frombuffer(scales, SCALES),
        np.frombuffer(norms, NORMS),
    )
    return _check(joined, *(size.tolist() for size in sizes))


def _are_whole(
    stored: Sequence[bytes], headers: NDArray[np.void], dimension: int, ends: Counts
) -> bool:
    """Return whether all have this format and dimension, and the length that their headers say."""
    has_format = (headers["magic"] == MAGIC) & np.isin(headers["version"], VERSIONS)
    is_expected = has_format & (headers["dimension"] == dimension)
    return bool(is_expected.all()) and np.array_equal(ends, [len(data) for data in stored])


def _find_edges(
    headers: NDArray[np.void], dimension: int, words: Counts, tokens: Counts, spans: Counts
) -> Counts:
    """Return the offsets of each passage's arrays and of its end, int64 ``[7, passages]``."""
    widths = (
        np.full(len(headers), HEADER.size),
        words * 4 * WORDS.itemsize,
        words * COUNTS.itemsize,
        tokens * dimension * CODES.itemsize,
        tokens * SCALES.itemsize,
        spans * NORMS.itemsize,
        np.where(headers["version"] == VERSIONS[-1], words, 0),
    )
    return np.cumsum(widths, axis=0)


def _check(
    joined: TokenCodes,
    word_counts: Sequence[int],
    token_counts: Sequence[int],
    span_counts: Sequence[int],
) -> JoinedCodes | None:
    """Return joined passages with words that refer to joined tokens, None if one is damaged.

    The words of `joined` still refer to tokens of their own passage.
    """
    token_ends = np.cumsum(token_counts, dtype=np.int32)
    shifts = np.repeat(token_ends - np.array(token_counts, dtype=np.int32), word_counts)
    words = joined.words + shifts[:, None]
    is_sound = (
        _names_own_tokens(words, shifts, np.repeat(token_ends, word_counts))
        and _has_own_spans(joined.counts, word_counts, span_counts)
        and _has_numbers(joined)
    )
    if not is_sound:
        return None
    tokens = TokenCodes(words, joined.counts, joined.codes, joined.scales, joined.inverse_norms)
    return JoinedCodes(tokens, span_counts)


def _names_own_tokens(words: Ints, first_tokens: Ints, token_ends: Ints) -> bool:
    """Return whether each word's tokens lie in its own passage."""
    first, after = words[:, 2], words[:, 3]
    return bool(
        np.all(first >= first_tokens) and np.all(after <= token_ends) and np.all(first <= after)
    )


def _has_own_spans(counts: Bytes, word_counts: Sequence[int], span_counts: Sequence[int]) -> bool:
    """Return whether spans end within their passage, and each has an inverse norm."""
    word_ends = np.cumsum(word_counts)
    spans_before = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    after_last_words = np.arange(len(counts)) + counts
    ends_inside = bool(np.all(after_last_words <= np.repeat(word_ends, word_counts)))
    return ends_inside and np.array_equal(spans_before[word_ends], np.cumsum(span_counts))


def _has_numbers(tokens: TokenCodes) -> bool:
    """Return whether scales and norms are values that `pack` can produce.

    The mean length of a passage's vectors is 1, so none is longer than their number.
    """
    halves, limit = tokens.inverse_norms.view(np.uint16), max(1, len(tokens.scales))
    smallest, largest = tokens.scales.min(initial=0.0), tokens.scales.max(initial=0.0)
    return bool(0.0 <= smallest <= largest <= limit and halves.max(initial=0) < FIRST_INFINITE_HALF)
