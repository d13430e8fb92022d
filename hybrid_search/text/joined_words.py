"""Joined codes of many passages, to pay numpy's cost per call only once.

Passages that are read for scoring are joined directly from their stored bytes. Building the arrays
of each passage would take longer than scoring it, and most passages are not needed afterwards.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text import codebook, residual_codes
from hybrid_search.text.types import Bytes, Codebook, Floats, Ints, WordCodes

HEADER = struct.Struct("<4sBBHIIII")
"""Magic, bits of a number, layout, dimension, codebook, number of rows, of words and of spans."""

MAGIC = b"HSW1"
HAS_BOUNDARIES = 128
"""The part of a layout that says that there are boundaries; the rest are the bytes of a place."""

PLACE_BYTES = (1, 2, 4)

FIRST_INFINITE_HALF = 0x7C00
"""The bits of float16 infinity; those of NaN and of negative numbers are larger."""

HEADERS = np.dtype(
    {
        "names": ("magic", "bits", "layout", "dimension", "codebook", "rows", "words", "spans"),
        "formats": ("S4", "u1", "u1", "<u2", "<u4", "<u4", "<u4", "<u4"),
    }
)

ENCODED = {
    "centroids": "centroid",
    "centroid_parts": "centroid_part",
    "residual_parts": "residual_part",
    "lengths": "length",
    "residuals": "residual",
}
"""The arrays of `WordCodes` that are columns of rows."""

COLUMNS = ("words", "counts", "norms", *ENCODED)
"""The arrays of `WordCodes` that are joined."""

Rows = NDArray[np.void]
"""What is stored of each word, and of the tokens between two words, see `row_type`."""

NO_WORD = 255
"""The count of spans that says that a row is of the tokens between two words."""


@cache
def row_type(dimension: int, bits: int) -> np.dtype[np.void]:
    """Return what is stored of a row, in the order of the bytes."""
    return np.dtype(
        [
            ("centroid", "<u2"),
            ("length", "<f2"),
            ("centroid_part", "u1"),
            ("residual_part", "u1"),
            ("count", "u1"),
            ("boundary", "u1"),
            ("residual", "u1", (residual_codes.count_bytes(dimension, bits),)),
        ]
    )


@dataclass(frozen=True, slots=True, eq=False)
class JoinedCodes:
    """Undamaged passages joined into one, and the number of spans of each.

    The character offsets of the joined words are meaningless.
    """

    codes: WordCodes
    span_counts: Sequence[int]


def split_spans(spans: Floats, span_counts: Sequence[int]) -> list[Floats]:
    """Split the values of all spans by passage, given the number of spans of each."""
    ends = np.cumsum([0, *span_counts]).tolist()
    return [spans[first:after] for first, after in pairwise(ends)]


def join_sound(passages: Sequence[WordCodes], dimension: int) -> JoinedCodes | None:
    """Join the passages, or return None if one of them is damaged, or written otherwise."""
    first = passages[0]
    if any(
        passage.dimension != dimension
        or passage.bits != first.bits
        or passage.codebook is not first.codebook
        for passage in passages
    ):
        return None
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(passage, name) for passage in passages]) for name in COLUMNS
    }
    row_counts = [len(passage.lengths) for passage in passages]
    word_counts = [len(passage.counts) for passage in passages]
    starts = np.cumsum(row_counts) - row_counts
    rows = np.concatenate([passage.rows for passage in passages]) + np.repeat(starts, word_counts)
    return _check(
        WordCodes(first.codebook, first.bits, rows=rows, **joined),
        word_counts,
        [len(passage.norms) for passage in passages],
    )


def join_stored(stored: Sequence[bytes], dimension: int) -> JoinedCodes | None:
    """Join the passages with these `stored` bytes, or return None if one of them is damaged."""
    if min(map(len, stored)) < HEADER.size:
        return None
    headers = np.frombuffer(b"".join([data[: HEADER.size] for data in stored]), HEADERS)
    if not _are_alike(headers, dimension):
        return None
    bits = int(headers["bits"][0])
    used = codebook.find(int(headers["codebook"][0]), dimension)
    if used is None:
        return None
    row_counts, words, spans = (
        headers[name].astype(np.int64) for name in ("rows", "words", "spans")
    )
    of_rows = row_type(dimension, bits)
    norms_at = HEADER.size + row_counts * of_rows.itemsize
    places_at = norms_at + spans
    ends = places_at + 2 * words * (headers["layout"] & (HAS_BOUNDARIES - 1))
    if not np.array_equal(ends, [len(data) for data in stored]):
        return None
    views = [memoryview(data) for data in stored]
    rows = [view[HEADER.size : end] for view, end in zip(views, norms_at.tolist(), strict=True)]
    bounds = zip(views, norms_at.tolist(), places_at.tolist(), strict=True)
    norms = [view[first:after] for view, first, after in bounds]
    joined = from_rows(
        used, bits, np.frombuffer(b"".join(rows), of_rows), np.frombuffer(b"".join(norms), np.uint8)
    )
    ends_of_rows = np.cumsum(row_counts)
    has_words = np.diff(np.searchsorted(joined.rows, ends_of_rows), prepend=0)
    if not np.array_equal(has_words, words):
        return None
    return _check(joined, words.tolist(), spans.tolist())


_NO_PLACES = np.zeros((0, 2), np.int32)


def from_rows(
    used: Codebook,
    bits: int,
    rows: Rows,
    norms: Bytes,
    words: Ints = _NO_PLACES,
    *,
    has_boundaries: bool = False,
) -> WordCodes:
    """Return the codes of some stored rows, whose `words` may be left out if nobody asks."""
    of_words = np.flatnonzero(rows["count"] != NO_WORD)
    counts, boundaries = rows["count"][of_words], rows["boundary"][of_words]
    encoded: dict[str, Any] = {name: rows[column] for name, column in ENCODED.items()}
    return WordCodes(
        used,
        bits,
        words,
        counts,
        of_words,
        norms=norms,
        boundaries=boundaries if has_boundaries else None,
        **encoded,
    )


def find_rows(data: bytes) -> Rows:
    """Return the rows of a passage that is stored so, without a copy; none if it is damaged."""
    no_rows = np.zeros(0, row_type(0, residual_codes.DEFAULT_BITS))
    if len(data) < HEADER.size:
        return no_rows
    magic, bits, _, dimension, _, row_count, _, span_count = HEADER.unpack_from(data)
    if magic != MAGIC or bits not in residual_codes.BITS:
        return no_rows
    kind = row_type(dimension, bits)
    if len(data) < HEADER.size + row_count * kind.itemsize + span_count:
        return no_rows
    return np.ndarray((row_count,), kind, data, HEADER.size)


def _are_alike(headers: NDArray[np.void], dimension: int) -> bool:
    """Return whether all have this format and dimension, and the same bits and codebook."""
    has_format = (headers["magic"] == MAGIC) & (headers["dimension"] == dimension)
    has_format &= np.isin(headers["layout"] & (HAS_BOUNDARIES - 1), PLACE_BYTES)
    has_format &= np.isin(headers["bits"], residual_codes.BITS)
    for name in ("bits", "codebook"):
        has_format &= headers[name] == headers[name][0]
    return bool(has_format.all())


def _check(
    joined: WordCodes, word_counts: Sequence[int], span_counts: Sequence[int]
) -> JoinedCodes | None:
    """Return joined passages, None if one is damaged."""
    halves = np.ascontiguousarray(joined.lengths).view(np.uint16)
    is_sound = (
        _has_own_spans(joined.counts, word_counts, span_counts)
        and joined.centroids.max(initial=0) < len(joined.codebook.centroids)
        and halves.max(initial=0) < FIRST_INFINITE_HALF
    )
    return JoinedCodes(joined, span_counts) if is_sound else None


def _has_own_spans(counts: Bytes, word_counts: Sequence[int], span_counts: Sequence[int]) -> bool:
    """Return whether spans end within their passage, and each has a norm."""
    word_ends = np.cumsum(word_counts)
    spans_before = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    after_last_words = np.arange(len(counts)) + counts
    ends_inside = bool(np.all(after_last_words <= np.repeat(word_ends, word_counts)))
    return ends_inside and np.array_equal(spans_before[word_ends], np.cumsum(span_counts))
