"""Unit vectors in two bits a number, and their cosines with a query.

The numbers of a vector are mixed first. In a model of nested sizes the first numbers are the
largest, and two bits would cut them off; mixed, all are about as large, and cosines are the same.
"""

from __future__ import annotations

from functools import cache

import numkong
import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.types import Bytes, Codes, Floats

THRESHOLD = 0.9816
"""Numbers from this size on get the larger level, in units of the root mean square.

This and the ratio of the `LEVELS`, .4528 to 1.510, lose least of normally distributed numbers
(J. Max, Quantizing for minimum distortion, 1960, for four levels).
"""

LEVELS = np.array([-10, -3, 3, 10], np.int8)
"""The numbers that the codes 0 to 3 stand for, up to a factor."""

TYPICAL_LEVEL = 6.22
"""The root mean square of the levels of normally distributed numbers."""

NUMBERS_PER_BYTE = 4

ROWS_TOGETHER = 1024
"""Rows that are multiplied together: unpacked they fit into the cache, which halves the time."""

LONGEST_MIX = 64
"""The largest number of values that are mixed with one another; a power of 2."""


def count_bytes(dimension: int) -> int:
    """Return the bytes of one vector of `dimension` numbers; it is even."""
    return -(-dimension // (2 * NUMBERS_PER_BYTE)) * 2


def encode(unit_vectors: Floats) -> Bytes:
    """Return the codes of unit vectors, uint8 ``[rows, count_bytes(dimension)]``.

    `unit_vectors` is float32 ``[rows, dimension]``.
    """
    rows, dimension = unit_vectors.shape
    mixed = np.zeros((rows, NUMBERS_PER_BYTE * count_bytes(dimension)), np.float32)
    mixed[:, :dimension] = mix(unit_vectors) * np.float32(np.sqrt(dimension))
    numbers = (mixed >= -THRESHOLD).astype(np.uint8)
    numbers += mixed >= 0
    numbers += mixed >= THRESHOLD
    quarters = numbers.reshape(rows, mixed.shape[1] // NUMBERS_PER_BYTE, NUMBERS_PER_BYTE)
    codes: Bytes = np.bitwise_or.reduce(quarters << _SHIFTS, axis=2)
    return codes


def unpack(codes: Bytes) -> Codes:
    """Return the numbers that codes stand for, int8 ``[rows, 4 * bytes]``."""
    # two bytes at once take less than half the time of single ones
    pairs = np.ascontiguousarray(codes).view(np.uint16)
    numbers: Codes = _numbers_by_pair().take(pairs).view(np.int8)
    return numbers


def are_near(codes: Bytes, others: Bytes) -> bool:
    """Return whether no number has more than the next level in `others`, of the same shape.

    That is as much as the rounding of another machine can change.
    """
    steps = np.diff(LEVELS.astype(np.int16)).max()
    differences = np.abs(unpack(codes).astype(np.int16) - unpack(others))
    return bool(differences.max(initial=0) <= steps)


def multiply_own(codes: Bytes, unit_vectors: Floats) -> Floats:
    """Return the product of each vector with its decoded codes, float32 ``[rows]``.

    It is about .94. `unit_vectors` are the encoded vectors, float32 ``[rows, dimension]``.
    """
    dimension = unit_vectors.shape[1]
    numbers = unpack(codes)[:, :dimension].astype(np.float32)
    products: Floats = np.einsum("ij,ij->i", numbers, mix(unit_vectors))
    return products / _typical_length(dimension)


def multiply(codes: Bytes, query: Floats) -> Floats:
    """Return the products of a query and the vectors that codes stand for, float32 ``[rows]``.

    Divided by `multiply_own` they are estimates of the cosines with a unit query, neither too large
    nor too small on average (Gao and Long, "RaBitQ", 2024).
    """
    mixed = np.zeros((1, NUMBERS_PER_BYTE * codes.shape[1]), np.float32)
    mixed[:, : len(query)] = mix(query[None])
    step = max(float(np.abs(mixed).max()), 1e-12) / 127
    packed = numkong.dots_pack(np.rint(mixed / step).astype(np.int8), dtype="int8")
    products = np.zeros(len(codes), np.float32)
    for start in range(0, len(codes), ROWS_TOGETHER):
        rows = slice(start, start + ROWS_TOGETHER)
        products[rows] = np.asarray(numkong.dots_packed(unpack(codes[rows]), packed))[:, 0]
    return products * np.float32(step / _typical_length(len(query)))


def _typical_length(dimension: int) -> np.float32:
    return np.float32(TYPICAL_LEVEL * np.sqrt(dimension))


def mix(vectors: Floats) -> Floats:
    """Return vectors with their numbers mixed, float32 ``[rows, dimension]``.

    Numbers that lie far apart are mixed with one another, by Hadamard's transform of as many as the
    largest power of 2 that divides the dimension, up to `LONGEST_MIX`. So lengths and products stay
    the same, to mix twice changes nothing, and an odd dimension is not mixed.
    """
    rows, dimension = vectors.shape
    size = min(dimension & -dimension, LONGEST_MIX)
    mixed, blocks = vectors, 1
    while blocks < size:
        pairs = mixed.reshape(rows, blocks, 2, dimension // blocks // 2)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        mixed = np.stack([first + second, first - second], axis=2)
        blocks *= 2
    return mixed.reshape(rows, dimension) / np.float32(np.sqrt(size))


@cache
def _numbers_by_pair() -> NDArray[np.uint64]:
    """Return the eight numbers of any two bytes, each in 8 bits, uint64 ``[65536]``."""
    pairs = np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(-1, 2, 1)
    numbers = LEVELS[pairs >> _SHIFTS & 3].reshape(len(pairs), -1)
    numbers_by_pair: NDArray[np.uint64] = numbers.view(np.uint64)[:, 0]
    return numbers_by_pair


_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)
