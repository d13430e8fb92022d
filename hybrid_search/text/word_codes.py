"""Word codes: the stored form of a passage's vectors, and the cosines computed from it.

Spans are made of whole words, so the sum of the token vectors of each word is all that is kept of
them, in a few bits a number. Norms are those of the *codes*: a cosine is exact for what is stored,
and all derived data can be computed again from the codes if a file of an index is lost.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text import codebook, residual_codes, spans, word_vectors
from hybrid_search.text.joined_words import (
    HAS_BOUNDARIES,
    HEADER,
    MAGIC,
    NO_WORD,
    PLACE_BYTES,
    JoinedCodes,
    from_rows,
    join_sound,
    row_type,
    split_spans,
)
from hybrid_search.text.residual_codes import DEFAULT_BITS
from hybrid_search.text.spans import Index
from hybrid_search.text.types import (
    Bytes,
    Codebook,
    Encoding,
    Floats,
    Ints,
    Passage,
    PassageTokens,
    WordCodes,
)
from hybrid_search.text.word_vectors import WordQuery

NORM_TOLERANCE = 1
"""Allowed difference of two norms of the same codes, in steps: another machine may round the other
way.
"""


JOIN_PASSAGES = 128
"""Number of passages scored together.

With 512 the arrays are so large that the system allocates them anew each time, which took longer
than the scoring itself.
"""

Stored = TypeVar("Stored", WordCodes, bytes)


def gather(passage: Passage, encodings: Sequence[Encoding], dimension: int) -> PassageTokens:
    """Return the tokens of a passage's parts, joined.

    `encodings` has one encoding per part, with offsets relative to the part's `window_start`.
    Tokens outside the part's words are left out. The vectors are scaled to a mean length of 1 over
    the passage, which changes no cosine.
    """
    vectors = [np.zeros((0, dimension), np.float32)]
    rows = [np.zeros((0, 4), np.int32)]
    counts = [np.zeros(0, np.uint8)]
    token_count = 0
    for part, encoding in zip(passage.parts, encodings, strict=True):
        tokens = spans.token_bounds(encoding.offsets, part.words - part.window_start)
        first, after = int(tokens[0, 0]), int(tokens[-1, 1])
        vectors.append(encoding.vectors[first:after])
        columns = [part.words - passage.start, tokens - first + token_count]
        rows.append(np.concatenate(columns, axis=1, dtype=np.int32))
        counts.append(spans.counts(len(part.words), part.core, part.breaks))
        token_count += after - first
    joined = np.concatenate(vectors)
    mean = float(np.linalg.norm(joined, axis=1).mean()) if len(joined) else 1.0
    return PassageTokens(
        joined / np.float32(max(mean, 1e-12)), np.concatenate(rows), np.concatenate(counts)
    )


def pack(
    tokens: PassageTokens, used: Codebook, bits: int = DEFAULT_BITS, boundaries: Bytes | None = None
) -> WordCodes:
    """Return the codes of the words of a passage, and the norms of its spans.

    Args:
        tokens: The passage's tokens, joined by `gather`.
        used: The codebook of the model.
        bits: The bits of one number of a vector, one of `residual_codes.BITS`.
        boundaries: The clause boundaries, see `WordCodes`.
    """
    sums, rows = sum_rows(tokens)
    encoded = word_vectors.encode(sums, used, bits)
    words, no_norms = tokens.words[:, :2], np.zeros(0, np.uint8)
    codes = WordCodes(used, bits, words, tokens.counts, rows, *encoded, no_norms, boundaries)
    return replace(codes, norms=word_vectors.measure_norms(codes))


def sum_rows(tokens: PassageTokens) -> tuple[Floats, Index]:
    """Return the sum of the token vectors of each row, and the row of each word.

    A token that several words share, such as an unknown one, is divided among them: so the sum of a
    span has each of its tokens once.

    Returns:
        The sums, float32 ``[rows, dimension]``; and the rows, intp ``[words]``.
    """
    first, after = tokens.words[:, 2], tokens.words[:, 3]
    changes = np.zeros(len(tokens.vectors) + 1, np.int32)
    np.add.at(changes, first, 1)
    np.add.at(changes, after, -1)
    shares = np.maximum(np.cumsum(changes)[:-1], 1).astype(np.float32)
    sums = spans.running_sums(tokens.vectors / shares[:, None])
    has_gap = (first[1:] > after[:-1]) & ~spans.ends_part(tokens.counts)[:-1]
    rows = np.arange(len(first)) + np.concatenate([[0], np.cumsum(has_gap)])[: len(first)]
    bounds = np.zeros((len(first) + int(has_gap.sum()), 2), np.intp)
    bounds[rows] = tokens.words[:, 2:]
    bounds[rows[:-1][has_gap] + 1] = np.stack([after[:-1], first[1:]], axis=1)[has_gap]
    return np.asarray(sums[bounds[:, 1]] - sums[bounds[:, 0]]), rows


def vectors(codes: WordCodes) -> Floats:
    """Decode the vectors of all rows, float32 ``[rows, dimension]``."""
    return codebook.turn(word_vectors.decode_turned(codes))


def span_sum(codes: WordCodes, span: int) -> Floats:
    """Return the sum of the vectors of a span's rows, float32 ``[dimension]``.

    `span` is the span's number: word by word, shortest first, as in `WordCodes`.
    """
    first, last = spans.bounds(codes.counts)
    inside = slice(codes.rows[first[span]], codes.rows[last[span]] + 1)
    summed: Floats = vectors(codes)[inside].sum(axis=0)
    return summed


def cosines(query: Floats, codes: WordCodes) -> Floats:
    """Return the cosine of a unit query with every span of the passage, float32 ``[spans]``.

    `query` is float32 ``[dimension]``.
    """
    return multiply(WordQuery(query, codes.codebook), codes)


def multiply(query: WordQuery, codes: WordCodes) -> Floats:
    """Return the `cosines` of a query that is made ready once for many passages."""
    products, inverse_norms = query.multiply(codes), word_vectors.inverse_norms(codes)
    return spans.cosines(products, codes.rows, codes.counts, inverse_norms)


def span_cosines_by_passage(
    query: Floats, passages: Sequence[WordCodes]
) -> Iterator[Floats | None]:
    """Yield the cosines of each passage's spans, or None where its codes are damaged."""
    return score_joined(query, passages, join_sound)


def score_joined(
    query: Floats,
    passages: Sequence[Stored],
    join: Callable[[Sequence[Stored], int], JoinedCodes | None],
) -> Iterator[Floats | None]:
    """Yield the cosines of each passage's spans, or None where its codes are damaged.

    `JOIN_PASSAGES` passages are scored together, to pay numpy's cost per call once. With
    `join_stored` those of stored bytes come faster than after `word_codes.read`.
    """
    prepared: WordQuery | None = None
    for start in range(0, len(passages), JOIN_PASSAGES):
        block = passages[start : start + JOIN_PASSAGES]
        joined = join(block, len(query))
        if joined is not None:
            if prepared is None or prepared.codebook is not joined.codes.codebook:
                prepared = WordQuery(query, joined.codes.codebook)
            yield from split_spans(multiply(prepared, joined.codes), joined.span_counts)
        elif len(block) == 1:
            yield None
        else:  # a passage is damaged: score each one alone
            for passage in block:
                yield from score_joined(query, [passage], join)


def is_sound(codes: WordCodes, dimension: int) -> bool:
    """Return whether codes have this dimension and refer only to their own spans and centroids.

    Damage that only changes values is not detected.
    """
    return join_sound([codes], dimension) is not None


def has_own_norms(codes: WordCodes) -> bool:
    """Return whether the stored norms match the codes, which must be sound.

    So the norms act as a checksum of the codes that detects only damage that changes a score.
    """
    expected = word_vectors.measure_norms(codes).astype(np.int16)
    if len(expected) != len(codes.norms):
        return False
    differences = np.abs(expected - codes.norms)
    return bool(differences.max(initial=0) <= NORM_TOLERANCE)


def to_bytes(codes: WordCodes) -> bytes:
    """Return `codes` as one binary field, little-endian.

    A header comes first, then all rows (`joined_words.row_type`), a byte for the norm of each span,
    and of each word the characters between it and the word before, and its own.
    """
    rows = np.zeros(len(codes.lengths), row_type(codes.dimension, codes.bits))
    rows["centroid"], rows["length"] = codes.centroids, codes.lengths
    rows["centroid_part"], rows["residual_part"] = codes.centroid_parts, codes.residual_parts
    rows["residual"] = codes.residuals
    rows["count"] = NO_WORD
    rows["count"][codes.rows] = codes.counts
    layout = 0
    if codes.boundaries is not None:
        rows["boundary"][codes.rows], layout = codes.boundaries, HAS_BOUNDARIES
    places = _to_places(codes.words)
    header = HEADER.pack(
        MAGIC,
        codes.bits,
        layout | places.itemsize,
        codes.dimension,
        codes.codebook.identity,
        len(rows),
        len(codes.words),
        len(codes.norms),
    )
    return b"".join([header, rows.tobytes(), codes.norms.tobytes(), places.tobytes()])


def _to_places(words: Ints) -> NDArray[np.unsignedinteger[Any]]:
    """Return the gap before each word and its length, in as few bytes as the largest needs."""
    edges = np.concatenate([np.zeros(1, np.int32), words.ravel()])
    gaps = np.diff(edges)
    size = next(size for size in PLACE_BYTES if gaps.max(initial=0) < 1 << 8 * size)
    return gaps.astype(f"<u{size}")


_NO_ROWS = np.zeros(0, row_type(0, DEFAULT_BITS))
UNREADABLE = from_rows(codebook.plain(0), DEFAULT_BITS, _NO_ROWS, np.zeros(0, np.uint8))
"""Placeholder for stored codes that cannot be read.

Its dimension, 0, never matches an index, so `is_sound` is False for it.
"""

WORDLESS = replace(UNREADABLE, boundaries=np.zeros(0, np.uint8))
"""The codes of a text whose words are not looked at: it has no spans."""


def read(data: bytes) -> WordCodes:
    """Return the `WordCodes` that `to_bytes` wrote, without copying the data.

    It is `UNREADABLE` if `data` is anything else, or no model with its codebook was loaded.
    """
    try:
        magic, bits, layout, dimension, identity, *sizes = HEADER.unpack_from(data)
    except (struct.error, TypeError):  # an edited row may hold any type
        return UNREADABLE
    size = layout & (HAS_BOUNDARIES - 1)
    used = codebook.find(identity, dimension)
    is_known = magic == MAGIC and bits in residual_codes.BITS and size in PLACE_BYTES
    if not is_known or used is None:
        return UNREADABLE
    row_count, words, span_count = sizes
    of_rows = row_type(dimension, bits)
    norms_at = HEADER.size + row_count * of_rows.itemsize
    places_at = norms_at + span_count
    if len(data) != places_at + 2 * words * size:
        return UNREADABLE
    rows = np.ndarray((row_count,), of_rows, data, HEADER.size)
    norms = np.ndarray((span_count,), np.uint8, data, norms_at)
    gaps = np.ndarray((2 * words,), f"<u{size}", data, places_at)
    places = gaps.cumsum(dtype=np.int32).reshape(words, 2)
    has_boundaries = bool(layout & HAS_BOUNDARIES)
    codes = from_rows(used, bits, rows, norms, places, has_boundaries=has_boundaries)
    return codes if len(codes.rows) == words else UNREADABLE
