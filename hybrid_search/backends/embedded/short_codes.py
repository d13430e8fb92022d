"""Short codes: they tell cheaply which passages are worth exact scores.

The word codes of a passage take some 24 KB, and reading them is what a search costs. Its short
codes are two layers of unit vectors, each cut to its first numbers and rounded: those of windows of
three words, and those of every word. A search of a small index compares the query with the first
layer of all passages, and with the second of those that were nearest. In a large one words are
listed by centroids: it compares the words of the lists that are nearest, and then the first layer
of the passages that have the best of them. The few that are nearest by both layers are scored
exactly. So an error here can only leave a passage out, and never changes a score.

A word's vector tells more of a passage than that of a longer window, as the encoder has read the
words around it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.short_vectors import Layer, ShortQuery, encode, pack, unpack
from hybrid_search.text import spans, word_codes
from hybrid_search.text.types import Bytes, Codes, Floats, WordCodes
from hybrid_search.text.window_policy import window_bounds, window_vectors_from_sums

Counts = NDArray[np.int32]
Rows = NDArray[np.intp]
Centroids = NDArray[np.uint16]


LAYERS = (Layer("3/1", 128, 8, 6.0), Layer("1/1", 160, 4, 2.5))
"""The layers, in the order in which they are searched.

Numbers of 4 bits tell twice as much a byte, and numbers of 8 bits take half the time: those of the
first layer are read at each search, those of the second only of few passages.
"""


WORDS = 1
"""The position of the layer of words."""

CODE_TOLERANCE = 1
"""How far a short code may be off: another machine may round otherwise."""


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
        centroids: uint16 ``[words]``: the centroid of each word, in the codebook of the model.
    """

    passages: Numbers
    layers: tuple[LayerCodes, ...]
    centroids: Centroids


def shorten(passage: int, tokens: WordCodes) -> ShortCodes:
    """Return the short codes of a passage; its word codes must be sound and have a span."""
    sums = spans.running_sums(word_codes.vectors(tokens))
    layers = []
    for layer in LAYERS:
        codes = encode(window_vectors_from_sums(sums, tokens, layer.policy), layer)
        layers.append(LayerCodes(np.array([len(codes)], np.int32), codes))
    words = window_bounds(tokens.counts, LAYERS[WORDS].policy)[:, 0]
    centroids = tokens.centroids[tokens.rows[words]]
    return ShortCodes(np.array([passage], np.int64), tuple(layers), centroids)


def shorten_query(vector: Floats) -> list[ShortQuery]:
    """Return a query, a unit vector, for each of `LAYERS`; `vector` is float32 ``[dimension]``."""
    return [ShortQuery.from_vector(vector, layer) for layer in LAYERS]


def empty() -> ShortCodes:
    """Return the short codes of no passage."""
    layers = (
        LayerCodes(np.zeros(0, np.int32), pack(np.zeros((0, layer.numbers), np.int8), layer))
        for layer in LAYERS
    )
    return ShortCodes(np.zeros(0, np.int64), tuple(layers), np.zeros(0, np.uint16))


def join(parts: Sequence[ShortCodes]) -> ShortCodes:
    """Return the passages of all `parts`, at least one."""
    layers = []
    for layers_of_parts in zip(*(part.layers for part in parts), strict=True):
        counts = np.concatenate([layer.counts for layer in layers_of_parts])
        codes = np.concatenate([layer.codes for layer in layers_of_parts])
        layers.append(LayerCodes(counts, codes))
    return ShortCodes(
        np.concatenate([part.passages for part in parts]),
        tuple(layers),
        np.concatenate([part.centroids for part in parts]),
    )


def count_differences(layer: Layer, stored: LayerCodes, expected: LayerCodes) -> int:
    """Return how many vectors of a layer are not the expected ones."""
    if stored.codes.shape != expected.codes.shape:
        return max(len(stored.codes), len(expected.codes))
    codes, expected_codes = (unpack(part.codes, layer) for part in (stored, expected))
    differences = np.abs(codes.astype(np.int16) - expected_codes)
    return int(np.count_nonzero(differences.max(axis=1, initial=0) > CODE_TOLERANCE))
