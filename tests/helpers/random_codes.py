"""Passages with random vectors, and their word codes."""

from __future__ import annotations

import numpy as np

from hybrid_search.text import codebook, spans, word_codes
from hybrid_search.text.types import Bytes, Floats, PassageTokens, WordCodes

FINEST = 8
"""Bits by which the codes of eight numbers still tell spans apart."""


def random_tokens(seed: int, dimension: int = 8) -> PassageTokens:
    """Return a passage of one to three parts, each word with one or two tokens."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, size=random.integers(1, 4)).tolist()
    counts = np.concatenate([spans.counts(size, size) for size in sizes])
    edges = np.concatenate([[0], np.cumsum(random.integers(1, 3, size=len(counts)))])
    places = np.arange(len(counts)) * 4
    words = np.stack([places, places + 3, edges[:-1], edges[1:]], axis=1).astype(np.int32)
    vectors = random.standard_normal((int(edges[-1]), dimension)).astype(np.float32)
    return PassageTokens(vectors, words, counts)


def no_tokens(dimension: int = 8) -> PassageTokens:
    nothing = np.zeros((0, dimension), np.float32)
    return PassageTokens(nothing, np.zeros((0, 4), np.int32), np.zeros(0, np.uint8))


def pack(tokens: PassageTokens, boundaries: Bytes | None = None, bits: int = FINEST) -> WordCodes:
    """Return codes without centroids."""
    return word_codes.pack(tokens, codebook.plain(tokens.vectors.shape[1]), bits, boundaries)


def pack_words(vectors: Floats, counts: Bytes, bits: int = FINEST) -> WordCodes:
    """Return the codes of words of one token and two characters each, with a blank between them.

    Vectors are scaled to a mean length of 1, as `word_codes.gather` does.
    """
    vectors = vectors / max(np.linalg.norm(vectors, axis=1).sum() / max(len(vectors), 1), 1e-12)
    numbers = np.arange(len(counts), dtype=np.int32)
    words = np.stack([3 * numbers, 3 * numbers + 2, numbers, numbers + 1], axis=1)
    return pack(PassageTokens(vectors, words, counts), bits=bits)


def random_codes(seed: int, dimension: int = 8) -> WordCodes:
    return pack(random_tokens(seed, dimension))


def no_codes() -> WordCodes:
    return pack(no_tokens())


def unit_query(seed: int, dimension: int = 8) -> Floats:
    query = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return np.asarray(query / np.linalg.norm(query), dtype=np.float32)
