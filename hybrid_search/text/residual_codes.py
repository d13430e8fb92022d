"""Residuals of unit vectors in 2, 3, 4 or 8 bits a number, and their products with queries.

The numbers of a turned residual are nearly normally distributed, so they are rounded to the levels
that lose least of such numbers (J. Max, Quantizing for minimum distortion, 1960), and with 8 bits
to even steps. Levels are int8, so that products are exact and fast.
"""

from __future__ import annotations

from functools import cache

import numkong
import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import UsageError
from hybrid_search.text.types import Bytes, Codes, Floats

BITS = (2, 3, 4, 8)
DEFAULT_BITS = 2

_POSITIVE_LEVELS = {
    2: (3, 10),
    3: (14, 45, 79, 127),
    4: (6, 18, 31, 44, 58, 75, 96, 127),
}
"""The levels above 0, in units of `STEPS`; those below are the same with the other sign.

Max's levels are .4528 and 1.510; .2451, .7560, 1.344 and 2.152; .1284, .3881, .6568, .9424, 1.256,
1.618, 2.069 and 2.733 standard deviations.
"""

STEPS = {2: 6.624, 3: 59.0, 4: 46.5, 8: 32.0}
"""How many units a standard deviation has, for each number of bits."""

MIDDLE = 128
"""The code of 0 in 8 bits."""

ROWS_TOGETHER = 1024
"""Rows that are multiplied together: unpacked they fit into the cache, which halves the time."""

QUERY_ROWS = 3
FINER_STEPS = 254
"""Steps of one row of a split query per step of the row before; the rest is at most half a step."""


def check_bits(bits: int) -> int:
    """Return `bits`; raise UsageError if codes cannot have so many a number."""
    if bits not in BITS:
        choices = ", ".join(map(str, BITS))
        raise UsageError(f"codes is {bits!r}, but numbers are stored in one of {choices} bits")
    return bits


def levels(bits: int) -> Codes:
    """Return what the codes of a number stand for, int8 ``[2 ** bits]``, in units of `STEPS`."""
    if bits == 8:
        return (np.arange(256) - MIDDLE).astype(np.int8)
    above = np.array(_POSITIVE_LEVELS[bits], np.int8)
    return np.concatenate([-above[::-1], above])


def count_bytes(dimension: int, bits: int) -> int:
    """Return the bytes of one residual of `dimension` numbers."""
    if bits == 8:
        return dimension
    if bits == 3:
        return 3 * -(-dimension // 8)
    return 2 * -(-dimension * bits // 16)


def round_numbers(units: Floats, bits: int) -> Bytes:
    """Return the codes of the numbers of turned unit vectors, uint8 ``[rows, dimension]``."""
    deviations = units * np.float32(np.sqrt(units.shape[1]) * STEPS[bits])
    if bits == 8:
        return np.asarray(np.rint(deviations).clip(-127, 127) + MIDDLE, dtype=np.uint8)
    of_codes = levels(bits).astype(np.float32)
    codes = np.zeros(units.shape, np.uint8)
    for threshold in (of_codes[1:] + of_codes[:-1]) / 2:
        codes += deviations >= threshold
    return codes


def pack(codes: Bytes, bits: int) -> Bytes:
    """Return codes of numbers as bytes, uint8 ``[rows, count_bytes(dimension, bits)]``.

    Of several codes in a byte the first is in the lowest bits. Codes of 3 bits are two parts: how
    far each number is from 0, in 2 bits, then whether it is positive, in 1 bit.
    """
    if bits == 8:
        return codes
    rows, dimension = codes.shape
    width = count_bytes(dimension, bits)
    numbers = {2: 4 * width, 3: width // 3 * 8, 4: 2 * width}[bits]
    padded = np.zeros((rows, numbers), np.uint8)
    padded[:, :dimension] = codes
    if bits != 3:
        return _join_bits(padded, bits)
    is_positive = (padded >= 4).astype(np.uint8)
    distances = np.where(is_positive, padded - 4, 3 - padded).astype(np.uint8)
    distances &= np.uint8(3)
    return np.concatenate([_join_bits(distances, 2), _join_bits(is_positive, 1)], axis=1)


def _join_bits(codes: Bytes, bits: int) -> Bytes:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    groups = codes.reshape(len(codes), codes.shape[1] // len(shifts), len(shifts))
    joined: Bytes = np.bitwise_or.reduce(groups << shifts, axis=2)
    return joined


def unpack(packed: Bytes, bits: int, dimension: int) -> Codes:
    """Return the levels of packed residuals, int8 ``[rows, dimension]``."""
    if bits == 8:
        return (packed ^ np.uint8(MIDDLE)).view(np.int8)
    if bits == 3:
        edge = packed.shape[1] // 3 * 2
        numbers = _look_up(packed[:, :edge], _table(3))
        numbers *= _signs().take(packed[:, edge:]).view(np.int8)
    else:
        numbers = _look_up(packed, _table(bits))
    return numbers[:, :dimension]


def _look_up(packed: Bytes, table: NDArray[np.unsignedinteger]) -> Codes:
    # two bytes at once take less than half the time of single ones
    return table.take(np.ascontiguousarray(packed).view("<u2")).view(np.int8)


@cache
def _table(bits: int) -> NDArray[np.unsignedinteger]:
    """Return the levels of any two bytes, as unsigned integers ``[65536]`` of 8 or 4 bytes."""
    width = 4 if bits == 4 else 2
    # of 3 bits the sign is apart
    of_codes = np.array(_POSITIVE_LEVELS[3], np.int8) if bits == 3 else levels(bits)
    pairs = np.arange(2**16, dtype=np.uint16)[:, None]
    shifts = np.arange(0, 16, width, dtype=np.uint16)
    numbers = of_codes[pairs >> shifts & (2**width - 1)]
    packed = np.ascontiguousarray(numbers)
    return packed.view(np.uint32)[:, 0] if bits == 4 else packed.view(np.uint64)[:, 0]


@cache
def _signs() -> NDArray[np.uint64]:
    """Return the signs that any byte stands for, 1 or -1 as int8 each, uint64 ``[256]``."""
    flags = np.arange(256, dtype=np.uint8)[:, None] >> np.arange(8, dtype=np.uint8) & 1
    signs = (2 * flags.astype(np.int8) - 1).astype(np.int8)
    return np.ascontiguousarray(signs).view(np.uint64)[:, 0]


def scale(bits: int, dimension: int) -> np.float32:
    """Return what a level is multiplied by, so that a typical residual has length 1."""
    return np.float32(1 / (STEPS[bits] * np.sqrt(dimension)))


QUERY_PLANES = 8
"""Bits of a number of a query in planes: products are off by less than rounding 2 bits costs."""


@cache
def _query_weights() -> Floats:
    return np.array([float(FINER_STEPS) ** -row for row in range(QUERY_ROWS)], np.float32)


class ResidualQuery:
    """A turned query, ready for its products with many packed residuals.

    It is split into `QUERY_ROWS` rows of int8, each of which encodes the remainder of the rows
    before it. So a number is off by 1 / (127 * 254 ** 2 * 2) of the largest.
    """

    def __init__(self, query: Floats) -> None:
        self._dimension = len(query)
        self._step = max(float(np.abs(query).max(initial=0.0)), 1e-30) / 127
        rest, rows = query / self._step, []
        for _ in range(QUERY_ROWS):
            rows.append(np.rint(rest))
            rest = (rest - rows[-1]) * FINER_STEPS
        self._packed = numkong.dots_pack(np.array(rows, np.int8), dtype="int8")

    def multiply(self, packed: Bytes, bits: int) -> Floats:
        """Return the product of the query and each residual, float32 ``[rows]``."""
        products = np.zeros(len(packed), np.float32)
        weights = self._step * float(scale(bits, self._dimension)) * _query_weights()
        for start in range(0, len(packed), ROWS_TOGETHER):
            rows = slice(start, start + ROWS_TOGETHER)
            numbers = np.ascontiguousarray(unpack(packed[rows], bits, self._dimension))
            products[rows] = np.asarray(numkong.dots_packed(numbers, self._packed)) @ weights
        return products


class RoughQuery:
    """A turned query, ready for rough products with many packed residuals.

    A level of 2 bits is a sum of what each bit stands for, so the query is cut into planes of bits,
    too, and a product is counted: the bits that are set in both. That takes a third of the time of
    unpacking. Codes of other bits are unpacked.
    """

    def __init__(self, query: Floats, bits: int) -> None:
        self._exact = ResidualQuery(query) if bits != 2 else None
        self._bits, self._scale = bits, scale(bits, len(query))
        if self._exact is not None:
            return
        lowest, first, second, _ = levels(2).astype(np.float32)
        padded = np.zeros(4 * count_bytes(len(query), 2), np.float32)
        padded[: len(query)] = query
        weights = np.outer(padded, [first - lowest, second - lowest]).ravel()
        step = max(float(np.abs(weights).max(initial=0.0)), 1e-30) / (2 ** (QUERY_PLANES - 1) - 1)
        planes = np.arange(QUERY_PLANES)
        numbers = np.rint(weights / step).astype(np.int64) >> planes[:, None] & 1
        packed = np.packbits(numbers.astype(np.uint8), axis=1, bitorder="little")
        self._planes = numkong.dots_pack(packed, dtype="uint1")
        signs = np.where(planes < QUERY_PLANES - 1, 1.0, -1.0)  # two's complement
        self._weights = (step * signs * 2.0**planes).astype(np.float32)
        self._constant = np.float32(lowest * query.sum())

    def multiply(self, packed: Bytes) -> Floats:
        """Return the product of the query and each residual, about, float32 ``[rows]``."""
        if self._exact is not None:
            return self._exact.multiply(packed, self._bits)
        counts = np.asarray(numkong.dots_packed(packed, self._planes)).astype(np.float32)
        products: Floats = counts @ self._weights
        products += self._constant
        products *= self._scale
        return products
