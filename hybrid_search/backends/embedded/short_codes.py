"""Short codes: they tell cheaply which passages are worth exact scores.

The token codes of a passage take some 24 KB, and reading them is what a search costs. Its short
codes are two layers of unit vectors, each cut to its first numbers and rounded: those of windows of
three words, and those of every word. A search compares the query with the first layer of all
passages, and with the second of those that were nearest. The few that are nearest by both are
scored exactly. So an error here can only leave a passage out, and never changes a score.

A word's vector tells more of a passage than that of a longer window, as the encoder has read the
words around it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.text import spans, token_codes
from hybrid_search.text.types import Bytes, Codes, Floats, TokenCodes
from hybrid_search.text.window_policy import window_vectors_from_sums

Counts = NDArray[np.int32]
Rows = NDArray[np.intp]


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

LAYERS = (Layer("3/1", 128, 8, 6.0), Layer("1/1", 160, 4, 2.5))
"""The layers, in the order in which they are searched.

Numbers of 4 bits tell twice as much a byte, and numbers of 8 bits take half the time: those of the
first layer are read at each search, those of the second only of few passages.
"""


@dataclass(frozen=True, slots=True, eq=False)
class LayerCodes:
    """The windows of some passages in one layer.

    Attributes:
        counts: int32 ``[passages]``: how many windows each passage has, at least 1.
        codes: int8 ``[windows, numbers]``, or of 4 bits uint8 ``[windows, numbers / 2]``, the first
            of two codes in the lower bits.
    """

    counts: Counts
    codes: Codes | Bytes


@dataclass(frozen=True, slots=True, eq=False)
class ShortCodes:
    """The short codes of some passages, one after the other.

    Attributes:
        passages: int64 ``[passages]``: the passages' numbers, ascending.
        layers: One for each of `LAYERS`.
    """

    passages: Numbers
    layers: tuple[LayerCodes, ...]


def shorten(passage: int, tokens: TokenCodes) -> ShortCodes:
    """Return the short codes of a passage; its token codes must be sound and have a span."""
    sums = spans.running_sums(token_codes.vectors(tokens))
    layers = []
    for layer in LAYERS:
        codes = encode(window_vectors_from_sums(sums, tokens, layer.policy), layer)
        layers.append(LayerCodes(np.array([len(codes)], np.int32), codes))
    return ShortCodes(np.array([passage], np.int64), tuple(layers))


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
    return np.stack([(signed << 4) >> 4, signed >> 4], axis=2).reshape(len(codes), -1)


def empty() -> ShortCodes:
    """Return the short codes of no passage."""
    layers = (
        LayerCodes(np.zeros(0, np.int32), pack(np.zeros((0, layer.numbers), np.int8), layer))
        for layer in LAYERS
    )
    return ShortCodes(np.zeros(0, np.int64), tuple(layers))


def join(parts: Sequence[ShortCodes]) -> ShortCodes:
    """Return the passages of all `parts`, at least one."""
    layers = []
    for layers_of_parts in zip(*(part.layers for part in parts), strict=True):
        counts = np.concatenate([layer.counts for layer in layers_of_parts])
        codes = np.concatenate([layer.codes for layer in layers_of_parts])
        layers.append(LayerCodes(counts, codes))
    return ShortCodes(np.concatenate([part.passages for part in parts]), tuple(layers))
