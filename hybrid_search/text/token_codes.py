"""The tokens of a passage: from the encoder's output to the codes that are stored, and back.

int8 codes with one scale a token are 1/4 of float32 and changed no span's cosine by more than
0.0011; with the inverse norms beside them a passage is scored in about 50 microseconds. Norms and
covering spans are computed from the *codes*, so that whatever is derived from them can be derived
again, bit for bit, when an index file is lost.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybrid_search.errors import IndexStoreError
from hybrid_search.text import spans
from hybrid_search.text.types import Bytes, Codes, Encoding, Floats, Ints, Passage, TokenCodes

_HEADER = struct.Struct("<4sHHIII")
_MAGIC = b"HST1"
_WIDTHS = {"<i4": 4, "u1": 1, "i1": 1, "<f4": 4, "<f2": 2}

JOIN_PASSAGES = 128
"""Passages scored together. Of 512 the arrays are so large that the system gives them anew each
time, which took longer than the scoring.
"""

CACHE_ROWS = 512
"""Token codes turned into float32 at once: 0.8 MB at 384 dimensions."""


def gather(
    passage: Passage, encodings: Sequence[Encoding], dimension: int
) -> tuple[Floats, Ints, Bytes]:
    """The tokens of a passage's parts, one after the other.

    `encodings` holds one for each part, offsets counted from its `window_start`. Returns the
    vectors float32 ``[tokens, dimension]``, `words` int32 ``[words, 4]`` and `counts` uint8
    ``[words]`` as in `TokenCodes`. Tokens outside the part's words are left out.
    """
    vectors, rows, counts, token_count = (
        [np.zeros((0, dimension), np.float32)],
        [np.zeros((0, 4), np.int32)],
        [np.zeros(0, np.uint8)],
        0,
    )
    for part, encoding in zip(passage.parts, encodings, strict=True):
        tokens = spans.token_bounds(encoding.offsets, part.words - part.window_start)
        first, after = int(tokens[0, 0]), int(tokens[-1, 1])
        vectors.append(encoding.vectors[first:after])
        rows.append(
            np.concatenate(
                [part.words - passage.start, tokens - first + token_count], axis=1, dtype=np.int32
            )
        )
        counts.append(spans.counts(len(part.words), part.core))
        token_count += after - first
    return np.concatenate(vectors), np.concatenate(rows), np.concatenate(counts)


def quantize(vectors: Floats) -> tuple[Codes, Floats]:
    """int8 codes and float32 scales of the rows of `vectors`: row = code * scale, the largest
    element at 127.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-12) / 127.0
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def vectors(tokens: TokenCodes) -> Floats:
    """The token vectors that the codes stand for, float32 ``[tokens, dimension]``."""
    return tokens.codes * tokens.scales[:, None]


def pack(token_vectors: Floats, words: Ints, counts: Bytes) -> TokenCodes:
    """Codes and inverse norms of gathered tokens.

    The passage's vectors are scaled to a mean length of 1, which no cosine notices.
    """
    mean = float(np.linalg.norm(token_vectors, axis=1).mean()) if len(token_vectors) else 1.0
    codes, scales = quantize(token_vectors / max(mean, 1e-12))
    inverse = spans.inverse(spans.norms(codes * scales[:, None], words[:, 2:], counts))
    return TokenCodes(words, counts, codes, scales, np.minimum(inverse, 65504.0).astype(np.float16))


def cosines(query: Floats, tokens: TokenCodes) -> Floats:
    """The cosine of a unit query, float32 ``[dimension]``, with every span of the passage, float32
    ``[spans]``.
    """
    products = _products(query, tokens.codes) * tokens.scales
    return spans.cosines(products, tokens.words[:, 2:], tokens.counts, tokens.inverse_norms)


def _products(query: Floats, codes: Codes) -> Floats:
    """``codes @ query``, some rows at a time, so that their float32 form stays in the processor's
    cache: 3 times as fast.
    """
    products = np.empty(len(codes), dtype=np.float32)
    for start in range(0, len(codes), CACHE_ROWS):
        np.dot(
            codes[start : start + CACHE_ROWS].astype(np.float32),
            query,
            out=products[start : start + CACHE_ROWS],
        )
    return products


def span_cosines_by_passage(query: Floats, token_codes: Sequence[TokenCodes]) -> Iterator[Floats]:
    """`cosines` of several passages, `JOINED` at a time: what numpy costs a call is paid for all of
    them together.
    """
    for start in range(0, len(token_codes), JOIN_PASSAGES):
        block = token_codes[start : start + JOIN_PASSAGES]
        block_cosines, position = cosines(query, _join(block)), 0
        for codes in block:
            yield block_cosines[position : position + len(codes.inverse_norms)]
            position += len(codes.inverse_norms)


def best_cosine_by_passage(query: Floats, token_codes: Sequence[TokenCodes]) -> Floats:
    """The best cosine of any span of each passage, float32 ``[passages]``; -1 for a passage without
    a span.
    """
    return np.array(
        [
            span_cosines.max(initial=-1.0)
            for span_cosines in span_cosines_by_passage(query, token_codes)
        ],
        dtype=np.float32,
    )


def best_passages(
    query: Floats, codes_by_key: Mapping[Any, TokenCodes], limit: int
) -> dict[Any, TokenCodes]:
    """The `most` passages of `many` whose best span is nearest to `query`, best first; of equal
    ones those that stand first in `many`.
    """
    keys, best = list(codes_by_key), best_cosine_by_passage(query, list(codes_by_key.values()))
    return {
        keys[number]: codes_by_key[keys[number]]
        for number in np.argsort(-best, kind="stable")[:limit].tolist()
    }


def _join(passages: Sequence[TokenCodes]) -> TokenCodes:
    """Passages as if they were one: its words name tokens of the joined codes.

    Its character offsets mean nothing.
    """
    token_offsets = np.cumsum(
        [0, *(len(passage.codes) for passage in passages[:-1])], dtype=np.int32
    )
    columns = zip(
        *(
            (passage.words, passage.counts, passage.codes, passage.scales, passage.inverse_norms)
            for passage in passages
        ),
        strict=True,
    )
    words, counts, codes, scales, inverse = (np.concatenate(column) for column in columns)
    words = words + np.repeat(token_offsets, [len(passage.words) for passage in passages])[:, None]
    if (
        counts.sum(dtype=np.int64) != len(inverse)
        or words[:, 2:].min(initial=0) < 0
        or words[:, 3].max(initial=0) > len(codes)
    ):
        raise IndexStoreError(
            "stored token codes are damaged: their words name tokens or spans that are not there. Ingest the documents again."
        )
    return TokenCodes(words, counts, codes, scales, inverse)


def to_bytes(tokens: TokenCodes) -> bytes:
    """One binary field: a header of five counts, then the arrays of `TokenCodes` in their order,
    little-endian.
    """
    sizes = (tokens.codes.shape[1], len(tokens.words), len(tokens.codes), len(tokens.inverse_norms))
    arrays = (
        tokens.words.astype("<i4"),
        tokens.counts,
        tokens.codes,
        tokens.scales.astype("<f4"),
        tokens.inverse_norms.astype("<f2"),
    )
    return _HEADER.pack(_MAGIC, 1, *sizes) + b"".join(array.tobytes() for array in arrays)


def from_bytes(data: bytes) -> TokenCodes:
    """Read what `to_bytes` wrote, without copying. Raises IndexStoreError for anything else."""
    try:
        magic, version, dimension, words, tokens, inverse = _HEADER.unpack_from(data)
    except struct.error as error:
        raise IndexStoreError(
            f"stored token codes are damaged: {len(data)} bytes where a header takes {_HEADER.size}. Ingest again."
        ) from error
    sizes = (16 * words, words, tokens * dimension, 4 * tokens, 2 * inverse)
    expected = _HEADER.size + sum(sizes)
    if (magic, version) != (_MAGIC, 1) or len(data) != expected:
        raise IndexStoreError(
            f"stored token codes are damaged: {len(data)} bytes, {expected} by their header. Ingest the document again."
        )
    offset = _HEADER.size
    arrays = []
    for size, kind in zip(sizes, ("<i4", "u1", "i1", "<f4", "<f2"), strict=True):
        arrays.append(np.frombuffer(data, kind, size // _WIDTHS[kind], offset))
        offset += size
    return TokenCodes(
        arrays[0].reshape(words, 4),
        arrays[1],
        arrays[2].reshape(tokens, dimension),
        arrays[3],
        arrays[4],
    )
