"""Short vectors: unit vectors cut to their first numbers, rounded to a few bits, and their cosines.

Short codes are made of them, which tell cheaply which passages are worth exact scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numkong
import numpy as np

from hybrid_search.text.types import Bytes, Codes, Floats, Ints


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of short codes.

    Attributes:
        policy: Which windows it has, as in `text.window_policy`.
        numbers: How many numbers of each vector it has; even.
        bits: How many bits a number has, 8 or 4.
        clip: What the largest code stands for, in units of the vector's root mean square.
    """

    policy: str
    numbers: int
    bits: Literal[8, 4]
    clip: float

    @property
    def largest(self) -> int:
        """The largest code. Its negative is the smallest."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def length(self) -> float:
        """The length of the codes of a vector, nearly: that of all vectors."""
        return float(self.largest / self.clip * np.sqrt(self.numbers))

    @property
    def dtype(self) -> Literal["int8", "int4"]:
        """The type of the codes, as numkong calls it."""
        return "int8" if self.bits == 8 else "int4"


CORRECTIONS = 2
"""How often a vector is rounded again, so that its codes have the length of all codes."""

REST = 14
"""Steps of the query's second row in one of its first, for codes of 4 bits.

What the first leaves is at most half a step, and 7 is the largest code.
"""


def encode(unit_vectors: Floats, layer: Layer) -> Codes | Bytes:
    """Return the codes of unit vectors, cut to the numbers of a layer.

    Vectors that have fewer numbers are filled up with zeros. The codes of all vectors have nearly
    the same length, so that their products with a query are cosines, but for a factor that is the
    same for all. As rounding and clipping change a length, the step is corrected `CORRECTIONS`
    times.
    """
    cut = np.zeros((len(unit_vectors), layer.numbers), np.float32)
    cut[:, : unit_vectors.shape[1]] = unit_vectors[:, : layer.numbers]
    length = np.float32(layer.length)
    steps: Floats = (np.maximum(_lengths(cut), 1e-12) / length).astype(np.float32)
    codes = _round(cut, steps, layer.largest)
    for _ in range(CORRECTIONS):
        steps *= np.maximum(_lengths(codes), 1.0) / length
        codes = _round(cut, steps, layer.largest)
    return pack(codes.astype(np.int8), layer)


def _round(vectors: Floats, steps: Floats, largest: int) -> Floats:
    codes: Floats = np.rint(vectors / steps).clip(-largest, largest)
    return codes


def _lengths(vectors: Floats) -> Floats:
    """Return the length of each row, float32 ``[rows, 1]``."""
    lengths: Floats = np.linalg.norm(vectors, axis=1, keepdims=True)
    return lengths


def pack(codes: Codes, layer: Layer) -> Codes | Bytes:
    """Return codes of 8 bits as they are, and those of 4 bits two a byte."""
    if layer.bits == 8:
        return codes
    halves = codes.view(np.uint8) & np.uint8(15)
    packed: Bytes = halves[:, 0::2] | (halves[:, 1::2] << np.uint8(4))
    return packed


def unpack(codes: Codes | Bytes, layer: Layer) -> Codes:
    """Return the codes that `pack` was given, int8 ``[rows, numbers]``."""
    signed = codes.view(np.int8)
    if layer.bits == 8:
        return signed
    return np.stack([(signed << 4) >> 4, signed >> 4], axis=2).reshape(
        len(codes), 2 * codes.shape[1]
    )


@dataclass(frozen=True, slots=True, eq=False)
class ShortQuery:
    """A query, rounded as the vectors of a layer are, whose products with them are cosines.

    If the codes have 4 bits, it has 4 more in a second row.

    Attributes:
        layer: The layer of the vectors.
        rows: The codes of the query, as numkong multiplies them.
        factor: What makes a cosine of a product.
    """

    layer: Layer
    rows: numkong.PackedMatrix
    factor: np.float32

    @classmethod
    def from_vector(cls, vector: Floats, layer: Layer) -> ShortQuery:
        """Return the query that has this vector, float32 ``[dimension]``."""
        steps = np.zeros((1, layer.numbers), np.float32)
        steps[0, : len(vector)] = vector[: layer.numbers]
        steps *= layer.largest / max(float(np.abs(steps).max()), 1e-12)
        factor = 1 / max(layer.length * float(np.linalg.norm(steps)), 1e-12)
        rows = np.rint(steps)
        if layer.bits == 4:
            rows = np.concatenate([rows, np.rint((steps - rows) * REST)])
        packed = numkong.dots_pack(pack(rows.astype(np.int8), layer), dtype=layer.dtype)
        return cls(layer, packed, np.float32(factor))

    def multiply(self, codes: Codes | Bytes) -> Floats:
        """Return the cosines of codes of the layer and the query, about, float32 ``[rows]``."""
        products = np.asarray(numkong.dots_packed(codes, self.rows))
        cosines = products[:, 0].astype(np.float32)
        if self.layer.bits == 4:
            cosines += products[:, 1].astype(np.float32) / REST
        cosines *= self.factor
        return cosines


def multiply_codes(rows: Codes, columns: Codes) -> Ints:
    """Return the products of codes of 8 bits, int32 ``[rows, columns]``, which are exact.

    Both are int8 ``[vectors, numbers]``.
    """
    if not len(rows):
        return np.zeros((0, len(columns)), np.int32)
    packed = numkong.dots_pack(np.ascontiguousarray(columns), dtype="int8")
    return np.asarray(numkong.dots_packed(rows, packed))
