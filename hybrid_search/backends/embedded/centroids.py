"""Centroids of word vectors: a query reads the words near the nearest of them, and no others.

Each word of an index belongs to its nearest centroid, and for each centroid a segment lists its
words: an inverted file (Sivic and Zisserman 2003; Jegou et al. 2011). The centroids lie in two
levels, so that a word is compared with some of them only: all coarse ones, and then the fine ones
of the nearest few.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.short_codes import (
    LAYERS,
    WORDS,
    InvertedLists,
    Rows,
    ShortCodes,
)
from hybrid_search.backends.short_vectors import Layer, ShortQuery, encode, multiply_codes, unpack
from hybrid_search.text.types import Bytes, Codes, Floats, Ints

Words = TypeVar("Words", Codes, Bytes)

LAYER = Layer("1/1", 128, 8, 6.0)
"""The form of a centroid: the first numbers of a word's vector, in 8 bits."""

SIDE = 256
"""The most coarse centroids, and the most fine ones of each."""

WORDS_FOR_EACH = 12
"""With fewer words than this for each centroid there are fewer centroids."""

SAMPLE = 8 * SIDE**2
"""The most words that centroids are trained on."""

COARSE_SAMPLE = 100
"""Words for each coarse centroid that these are trained on."""

COARSE_ROUNDS, FINE_ROUNDS = 5, 3
"""How often the centroids are moved to the means of their words."""

BRANCHES = 4
"""Coarse centroids among whose fine ones a word's nearest is looked for.

On calls_sgd .996 of the exact ten best of 35,269 passages are among the 2,000 with the best listed
words; with one branch .977, as a word near a border is not where a query looks for it.
"""

BLOCK = 4096
"""Words that are compared with all coarse centroids at once: some 12 MB."""

LISTED_BLOCK = 16384
"""Words of a segment that are assigned at once: some 20 MB."""

SPARE = 4
"""How many times the centroids are put in order that would do if all lists were equally long.

Where the nearest lists are short, and these do not suffice, all are.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Centroids:
    """Centroids in two levels; the number of a fine one is its row.

    Attributes:
        identity: The number that tells them from others, see `compute_identity`.
        passages: How many passages the index had in its segments when they were trained.
        coarse: int8 ``[side, numbers]``, of `LAYER`.
        fine: int8 ``[side * side, numbers]``: those of the first coarse one, then of the second.
    """

    identity: int
    passages: int
    coarse: Codes
    fine: Codes

    @classmethod
    def from_bytes(cls, data: bytes, passages: int) -> Centroids:
        """Return the centroids that `to_bytes` wrote.

        Raises:
            ValueError: If `data` has another size than centroids can have.
        """
        codes = np.frombuffer(data, np.int8).reshape(-1, LAYER.numbers)
        side = isqrt(len(codes))
        if not side or side * (side + 1) != len(codes):
            raise ValueError(f"{len(codes)} rows do not make two levels of centroids")
        return cls(compute_identity(data), passages, codes[:side], codes[side:])

    def to_bytes(self) -> bytes:
        """Return all centroids as bytes: the coarse ones, then the fine ones."""
        return self.coarse.tobytes() + self.fine.tobytes()

    def assign(self, words: Codes) -> Ints:
        """Return the nearest centroid of each word, int32 ``[words]``; `words` as of `take_words`.

        All products are of whole numbers, so they are the same on every machine.
        """
        side = len(self.coarse)
        branches = _find_branches(words, self.coarse)
        order, ends = _group(branches.ravel(), side)
        rows = order // branches.shape[1]
        highest = np.full(len(words), np.iinfo(np.int32).min, np.int32)
        nearest = np.zeros(len(words), np.int32)
        for number in range(side):
            own = rows[ends[number] : ends[number + 1]]
            first = number * side
            products = multiply_codes(words.take(own, axis=0), self.fine[first : first + side])
            best = products.argmax(axis=1)
            values = products[np.arange(len(own)), best]
            is_nearer = values > highest[own]
            highest[own[is_nearer]] = values[is_nearer]
            nearest[own[is_nearer]] = first + best[is_nearer]
        return nearest

    def find_nearest(self, query: Floats, sizes: NDArray[np.int64], count: int) -> Rows:
        """Return the nearest centroids whose lists together have at least `count` words.

        Args:
            query: A unit vector, float32 ``[dimension]``.
            sizes: The number of words of each centroid, int ``[centroids]``.
            count: How many words; if there are fewer, all centroids are returned.
        """
        cosines = ShortQuery.from_vector(query, LAYER).multiply(self.fine)
        likely = SPARE * count * len(sizes) // max(1, int(sizes.sum()))
        nearest = _sort_best(cosines, likely)
        if sizes[nearest].sum() < count:
            nearest = _sort_best(cosines, len(cosines))
        return nearest[: int(np.searchsorted(np.cumsum(sizes[nearest]), count)) + 1]


def _sort_best(scores: Floats, count: int) -> Rows:
    """Return the positions of the `count` best scores, best first; all if there are fewer."""
    count = min(max(1, count), len(scores))
    best = np.argpartition(scores, len(scores) - count)[-count:]
    ordered: Rows = best[np.argsort(-scores[best])]
    return ordered


def take_words(codes: ShortCodes, rows: Rows | slice) -> Codes:
    """Return the first numbers of some words' codes, int8 ``[rows, numbers]``."""
    return _unpack(_take_packed(codes, rows))


def _take_packed(codes: ShortCodes, rows: Rows | slice) -> Bytes:
    """Return the same two a byte, uint8 ``[rows, numbers / 2]``."""
    return codes.layers[WORDS].codes[rows, : LAYER.numbers // 2].view(np.uint8)


def _unpack(packed: Bytes) -> Codes:
    return unpack(packed, LAYERS[WORDS])


def train(parts: Sequence[ShortCodes]) -> Centroids:
    """Return centroids of the words of all `parts`; the same parts have always the same."""
    generator = np.random.default_rng(0)
    packed = _sample_words(parts, generator)
    side = max(1, min(SIDE, isqrt(sum(map(_count_words, parts)) // WORDS_FOR_EACH)))
    coarse_sample = _unpack(packed[_choose(len(packed), COARSE_SAMPLE * side, generator)])
    coarse = _move(coarse_sample, _draw(coarse_sample, side, generator), COARSE_ROUNDS)
    order, ends = _group(_find_nearest(map(_unpack, _split(packed, BLOCK)), coarse), side)
    fine = []
    for number in range(side):
        own = _unpack(packed[order[ends[number] : ends[number + 1]]])
        own = own if len(own) else coarse[number : number + 1]
        fine.append(_move(own, _draw(own, side, generator), FINE_ROUNDS))
    data = b"".join(codes.tobytes() for codes in (coarse, *fine))
    return Centroids.from_bytes(data, sum(len(part.passages) for part in parts))


def _count_words(codes: ShortCodes) -> int:
    return len(codes.layers[WORDS].codes)


def _sample_words(parts: Sequence[ShortCodes], generator: np.random.Generator) -> Bytes:
    """Return as many words of all parts as there are at most, the same share of each.

    They stay packed, see `_take_packed`: unpacked they would take 67 MB.
    """
    total = sum(map(_count_words, parts))
    samples = []
    for part in parts:
        count = _count_words(part)
        rows = _choose(count, -(-count * SAMPLE // max(SAMPLE, total)), generator)
        samples.append(_take_packed(part, rows))
    return np.concatenate(samples)


def _choose(total: int, count: int, generator: np.random.Generator) -> Rows:
    """Return `count` of the first `total` numbers, ascending; all if there are fewer."""
    if count >= total:
        return np.arange(total)
    rows: Rows = np.sort(generator.choice(total, count, replace=False))
    return rows


def _draw(words: Codes, count: int, generator: np.random.Generator) -> Codes:
    """Return `count` of the words, each once if there are so many, as centroids to begin with."""
    drawn = words[generator.choice(len(words), count, replace=len(words) < count)]
    return _scale(drawn.astype(np.float32))


def _move(words: Codes, centroids: Codes, rounds: int) -> Codes:
    """Return the centroids after each was moved to the mean of its words, `rounds` times.

    This is spherical k-means (Dhillon and Modha 2001). A centroid without a word stays.
    """
    for _ in range(rounds):
        order, ends = _group(_find_nearest(_split(words, BLOCK), centroids), len(centroids))
        filled = np.flatnonzero(np.diff(ends))
        sums = np.add.reduceat(words[order].astype(np.float32), ends[filled], axis=0)
        centroids = centroids.copy()
        centroids[filled] = _scale(sums)
    return centroids


def _scale(vectors: Floats) -> Codes:
    """Return the codes of vectors, all of nearly the same length, so that products are cosines."""
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return encode(vectors / lengths, LAYER).view(np.int8)


def _find_nearest(blocks: Iterable[Codes], centroids: Codes) -> Ints:
    """Return the nearest of some centroids to each word of all blocks, int ``[words]``."""
    nearest = [multiply_codes(block, centroids).argmax(axis=1) for block in blocks]
    return np.concatenate([np.zeros(0, np.intp), *nearest])


def _find_branches(words: Codes, coarse: Codes) -> Ints:
    """Return the nearest coarse centroids of each word, int ``[words, branches]``."""
    count = min(BRANCHES, len(coarse))
    branches = [np.zeros((0, count), np.int32)]
    for block in _split(words, BLOCK):
        products = multiply_codes(block, coarse)
        nearest = np.argpartition(products, len(coarse) - count, axis=1)[:, -count:]
        branches.append(nearest.astype(np.int32))
    return np.concatenate(branches)


def _split(words: Words, size: int) -> Iterator[Words]:
    """Yield all words in blocks of this size, the last of which may be smaller."""
    return (words[start : start + size] for start in range(0, len(words), size))


def _group(numbers: Ints, count: int) -> tuple[Rows, Rows]:
    """Return the order that sorts numbers below `count`, and where each begins, and the last ends.

    They are int ``[numbers]`` and ``[count + 1]``.
    """
    sizes = np.bincount(numbers, minlength=count)
    return np.argsort(numbers, kind="stable"), np.append(0, np.cumsum(sizes))


def list_words(codes: ShortCodes, centroids: Centroids) -> InvertedLists:
    """Return the words of a segment by their nearest centroids."""
    starts_of_blocks = range(0, _count_words(codes), LISTED_BLOCK)
    blocks = (take_words(codes, slice(start, start + LISTED_BLOCK)) for start in starts_of_blocks)
    numbers = np.concatenate([np.zeros(0, np.int32), *map(centroids.assign, blocks)])
    order, starts = _group(numbers, len(centroids.fine))
    return InvertedLists(centroids.identity, starts.astype(np.int32), order.astype(np.int32))


def compute_identity(data: bytes) -> int:
    """Return a number by which centroids are recognised, the first 63 bits of their SHA-256."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big") >> 1
