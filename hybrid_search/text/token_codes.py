"""Token codes: the stored form of a passage's token vectors, and scores computed from it.

int8 codes with one scale per token take 1/4 of the space of float32 and changed no span's cosine by
more than 0.0011. With the stored inverse norms, scoring a passage takes about 50 microseconds.
Norms and covering windows are computed from the *codes*, so all derived data can be recomputed bit
for bit if an index file is lost.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numkong
import numpy as np

from hybrid_search.errors import IndexStoreError
from hybrid_search.text import spans
from hybrid_search.text.joined_codes import (
    CODES,
    COUNTS,
    HEADER,
    MAGIC,
    NORMS,
    SCALES,
    VERSIONS,
    WORDS,
    JoinedCodes,
    join_sound,
    join_stored,
)
from hybrid_search.text.types import Bytes, Codes, Encoding, Floats, Ints, Passage, TokenCodes

if TYPE_CHECKING:
    from hybrid_search.text.span_filter import SpanFilter

UNREADABLE = TokenCodes(
    np.zeros((0, 4), np.int32),
    np.zeros(0, np.uint8),
    np.zeros((0, 0), np.int8),
    np.zeros(0, np.float32),
    np.zeros(0, np.float16),
)
"""Placeholder for stored codes that cannot be read.

Its dimension, 0, never matches an index, so `is_sound` is False for it.
"""

MAX_HALF = 65504.0
"""The largest float16."""

NORM_TOLERANCE = 0.002
"""Allowed relative difference of two inverse norms of the same codes: one float16 step.

Another machine may add in a different order.
"""

JOIN_PASSAGES = 128
"""Number of passages scored together.

With 512 the arrays are so large that the system allocates them anew each time, which took longer
than the scoring itself.
"""

Stored = TypeVar("Stored", TokenCodes, bytes)

QUERY_ROWS = 3
FINER_STEPS = 254
"""Steps of one row of a split query per step of the row before; the rest is at most half a step."""


def gather(
    passage: Passage, encodings: Sequence[Encoding], dimension: int
) -> tuple[Floats, Ints, Bytes]:
    """Join the tokens of a passage's parts.

    `encodings` has one encoding per part, with offsets relative to the part's `window_start`.
    Tokens outside the part's words are left out.

    Returns:
        The vectors, float32 ``[tokens, dimension]``; and `words`, int32 ``[words, 4]``, and
        `counts`, uint8 ``[words]``, as in `TokenCodes`.
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
    return np.concatenate(vectors), np.concatenate(rows), np.concatenate(counts)


def quantize(vectors: Floats) -> tuple[Codes, Floats]:
    """Return int8 codes and float32 scales of the rows of `vectors`: row = code * scale.

    The largest element of a row becomes 127.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-12) / 127.0
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def vectors(tokens: TokenCodes) -> Floats:
    """Decode the token vectors, float32 ``[tokens, dimension]``."""
    return tokens.codes * tokens.scales[:, None]


def span_sum(tokens: TokenCodes, span: int) -> Floats:
    """Return the sum of the token vectors of a span, float32 ``[dimension]``.

    `span` is the span's number: word by word, shortest first, as in `TokenCodes`.
    """
    first, last = spans.bounds(tokens.counts)
    inside = slice(int(tokens.words[first[span], 2]), int(tokens.words[last[span], 3]))
    summed: Floats = (tokens.codes[inside] * tokens.scales[inside, None]).sum(axis=0)
    return summed


def pack(token_vectors: Floats, words: Ints, counts: Bytes) -> TokenCodes:
    """Return the codes and inverse norms of tokens joined by `gather`.

    The vectors are scaled to a mean length of 1 over the passage, which changes no cosine.
    """
    mean = float(np.linalg.norm(token_vectors, axis=1).mean()) if len(token_vectors) else 1.0
    codes, scales = quantize(token_vectors / max(mean, 1e-12))
    inverse = spans.inverse(spans.norms(codes * scales[:, None], words[:, 2:], counts))
    return TokenCodes(
        words, counts, codes, scales, np.minimum(inverse, MAX_HALF).astype(np.float16)
    )


def cosines(query: Floats, tokens: TokenCodes) -> Floats:
    """Return the cosine of a unit query with every span of the passage, float32 ``[spans]``.

    `query` is float32 ``[dimension]``.
    """
    products = _products(query, tokens.codes) * tokens.scales
    return spans.token_cosines(products, tokens.words[:, 2:], tokens.counts, tokens.inverse_norms)


def _products(query: Floats, codes: Codes) -> Floats:
    """Return ``codes @ query``, float32 ``[tokens]``, by products of int8, which are exact.

    The query is split into `QUERY_ROWS` rows of int8, each of which encodes the remainder of the
    rows before it. With one row the cosines would be wrong by up to .006, with three by 2e-7.
    """
    if not len(codes):
        return np.zeros(0, np.float32)
    step = max(float(np.abs(query).max(initial=0.0)), 1e-30) / 127
    rest, rows = query / step, []
    for _ in range(QUERY_ROWS):
        rows.append(np.rint(rest))
        rest = (rest - rows[-1]) * FINER_STEPS
    packed = numkong.dots_pack(np.array(rows, np.int8), dtype="int8")
    weights = step / float(FINER_STEPS) ** np.arange(QUERY_ROWS)
    products: Floats = (np.asarray(numkong.dots_packed(codes, packed)) @ weights).astype(np.float32)
    return products


def span_cosines_by_passage(
    query: Floats, token_codes: Sequence[TokenCodes]
) -> Iterator[Floats | None]:
    """Yield the `cosines` of each passage, or None where its codes are damaged."""
    return _score_joined(query, token_codes, join_sound)


def _score_joined(
    query: Floats,
    passages: Sequence[Stored],
    join: Callable[[Sequence[Stored], int], JoinedCodes | None],
) -> Iterator[Floats | None]:
    """Yield the `cosines` of each passage, or None where its codes are damaged.

    `JOIN_PASSAGES` passages are scored together, to pay numpy's cost per call once.
    """
    for start in range(0, len(passages), JOIN_PASSAGES):
        block = passages[start : start + JOIN_PASSAGES]
        joined = join(block, len(query))
        if joined is not None:
            yield from joined.split(cosines(query, joined.tokens))
        elif len(block) == 1:
            yield None
        else:  # a passage is damaged: score each one alone
            for passage in block:
                yield from _score_joined(query, [passage], join)


@dataclass(frozen=True, slots=True, eq=False)
class BestPassages:
    """The passages whose best spans are nearest to a query.

    Attributes:
        codes: Their token codes by key, the nearest passage first.
        others: The token codes of the passages in `always` that are not among the best.
        cosines: The cosine of every span of all these passages, float32 ``[spans]`` each.
        damaged: The keys of passages with damaged codes, which have no cosines.
        outdone: The number of passages whose best span does not count.
    """

    codes: dict[Any, TokenCodes]
    others: dict[Any, TokenCodes]
    cosines: dict[Any, Floats]
    damaged: list[Any]
    outdone: int = 0


Choose = Callable[[list[Any]], Iterable[Any]]
"""Chooses passages, in order, from all keys sorted nearest first."""


def keep_all(ranked: list[Any]) -> list[Any]:
    """Return all keys."""
    return ranked


def best_passages(
    query: Floats,
    codes_by_key: Mapping[Any, TokenCodes],
    choose: Choose = keep_all,
    span_filter: SpanFilter | None = None,
    always: Collection[Any] = (),
) -> BestPassages:
    """Return the passages that `choose` takes from those nearest to `query`, and the damaged ones.

    The best come first; ties keep the order of `codes_by_key`. Passages in `always` are returned
    regardless. With a `span_filter`, only spans that pass it can be the best.
    """
    passages = list(codes_by_key.values())
    cosines: Iterable[Floats | None] = span_cosines_by_passage(query, passages)
    outdone = 0
    if span_filter:
        of_all = list(cosines)
        cosines = list(span_filter.apply(of_all, passages))
        outdone = sum(map(_is_outdone, of_all, cosines))
    ranked, damaged = _rank_passages(zip(codes_by_key, cosines, strict=True))
    codes = {key: codes_by_key[key] for key in choose(list(ranked))}
    left = [key for key in always if key in ranked and key not in codes]
    others = {key: codes_by_key[key] for key in left}
    best = {key: ranked[key] for key in [*codes, *left]}
    return BestPassages(codes, others, best, damaged, outdone)


def _is_outdone(of_all: Floats | None, counting: Floats | None) -> bool:
    """Return whether the best of all spans of a passage does not count."""
    if of_all is None or counting is None or not len(of_all):
        return False
    return bool(counting.max() < of_all.max())


def best_stored_passages(
    query: Floats,
    stored_by_key: Mapping[Any, bytes],
    choose: Choose,
    always: Collection[Any] = (),
) -> BestPassages:
    """Return `best_passages` of stored bytes, faster than after `read`.

    Passages in `always` are returned regardless.
    """
    cosines = _score_joined(query, list(stored_by_key.values()), join_stored)
    ranked, damaged = _rank_passages(zip(stored_by_key, cosines, strict=True))
    codes = {key: read(stored_by_key[key]) for key in choose(list(ranked))}
    left = [key for key in always if key in ranked and key not in codes]
    others = {key: read(stored_by_key[key]) for key in left}
    return BestPassages(codes, others, {key: ranked[key] for key in [*codes, *left]}, damaged)


def _rank_passages(
    cosines_by_key: Iterable[tuple[Any, Floats | None]],
) -> tuple[dict[Any, Floats], list[Any]]:
    """Return the cosines of all passages, best span first, and the damaged passages."""
    sound: list[tuple[Any, Floats]] = []
    damaged: list[Any] = []
    for key, cosines in cosines_by_key:
        if cosines is None:
            damaged.append(key)
        else:
            sound.append((key, cosines))
    best = spans.find_highest([cosines for _, cosines in sound])
    return dict(sound[number] for number in np.argsort(-best, kind="stable").tolist()), damaged


def is_sound(tokens: TokenCodes, dimension: int) -> bool:
    """Return whether codes have this dimension and refer only to their own tokens and spans.

    Damage that only changes values is not detected.
    """
    return join_sound([tokens], dimension) is not None


def has_own_norms(tokens: TokenCodes) -> bool:
    """Return whether the stored inverse norms match the codes, which must be sound.

    So the norms act as a checksum of the codes that detects only damage that changes a score.
    """
    lengths = spans.norms(vectors(tokens), tokens.words[:, 2:], tokens.counts)
    expected = np.minimum(spans.inverse(lengths), MAX_HALF)
    return len(expected) == len(tokens.inverse_norms) and bool(
        np.allclose(tokens.inverse_norms, expected, rtol=NORM_TOLERANCE, atol=1e-7)
    )


def to_bytes(tokens: TokenCodes) -> bytes:
    """Return `tokens` as one binary field, little-endian.

    A header with magic, version and four sizes comes first, then the arrays of `TokenCodes` in
    order. Version 1 has no boundaries.
    """
    sizes = (tokens.codes.shape[1], len(tokens.words), len(tokens.codes), len(tokens.inverse_norms))
    arrays = (
        tokens.words.astype("<i4"),
        tokens.counts,
        tokens.codes,
        tokens.scales.astype("<f4"),
        tokens.inverse_norms.astype("<f2"),
    )
    version, boundaries = (
        (1, b"") if tokens.boundaries is None else (2, tokens.boundaries.tobytes())
    )
    header = HEADER.pack(MAGIC, version, *sizes)
    return b"".join([header, *(array.tobytes() for array in arrays), boundaries])


def from_bytes(data: bytes) -> TokenCodes:
    """Return the `TokenCodes` that `to_bytes` wrote, without copying the data.

    Raises:
        IndexStoreError: If `data` is anything else.
    """
    try:
        magic, version, dimension, words, tokens, span_count = HEADER.unpack_from(data)
    except struct.error as error:
        raise IndexStoreError(
            f"stored token codes are damaged: they have {len(data)} bytes, and the header alone "
            f"takes {HEADER.size}. Ingest the document again."
        ) from error
    counts_at = HEADER.size + words * 4 * WORDS.itemsize
    codes_at = counts_at + words
    scales_at = codes_at + tokens * dimension
    norms_at = scales_at + tokens * SCALES.itemsize
    boundaries_at = norms_at + span_count * NORMS.itemsize
    expected = boundaries_at + (words if version == 2 else 0)
    if magic != MAGIC or version not in VERSIONS or len(data) != expected:
        raise IndexStoreError(
            f"stored token codes are damaged: they have {len(data)} bytes, "
            f"{expected} by their header. Ingest the document again."
        )
    boundaries = np.ndarray((words,), COUNTS, data, boundaries_at) if version == 2 else None
    return TokenCodes(  # np.ndarray takes half the time of np.frombuffer and reshape
        np.ndarray((words, 4), WORDS, data, HEADER.size),
        np.ndarray((words,), COUNTS, data, counts_at),
        np.ndarray((tokens, dimension), CODES, data, codes_at),
        np.ndarray((tokens,), SCALES, data, scales_at),
        np.ndarray((span_count,), NORMS, data, norms_at),
        boundaries,
    )


def read(data: bytes) -> TokenCodes:
    """Return the `TokenCodes` that `to_bytes` wrote, or `UNREADABLE` if `data` is anything else."""
    try:
        return from_bytes(data)
    except (IndexStoreError, TypeError):  # an edited SQLite row may hold any type
        return UNREADABLE
