"""Codes of word vectors: from the sum of a word's token vectors to a few bytes, and back.

A word's unit vector is rounded to ``a * centroid + b * residual``: the nearest centroid, and what
is left of the vector, turned and in few bits a number. Of all vectors in the plane of the two it is
the nearest one to the word's, and it has length 1. The length of the word's vector is kept beside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text import residual_codes, spans
from hybrid_search.text.codebook import find_nearest, turn
from hybrid_search.text.residual_codes import ResidualQuery, RoughQuery
from hybrid_search.text.types import Bytes, Codebook, Floats, Halves, WordCodes

CENTROID_STEPS, RESIDUAL_STEPS = 255, 128
"""Steps of the two parts of a unit vector, a and b, from 0 to 1; b may be a little larger."""

NORM_STEPS = 250
"""Steps of a span's norm, from 0 to the sum of its rows' lengths, which rounding may exceed."""


Encoded = tuple[NDArray[np.uint16], Bytes, Bytes, Halves, Bytes]
"""The vectors of some words in codes: from `centroids` to `residuals` of `WordCodes`."""


def encode(vectors: Floats, codebook: Codebook, bits: int) -> Encoded:
    """Return the codes of word vectors, float32 ``[words, dimension]``; zeros have length 0."""
    turned = turn(vectors)
    lengths: Floats = np.linalg.norm(turned, axis=1)
    units = turned * spans.inverse(lengths)[:, None]
    nearest = find_nearest(vectors, codebook)
    centroids = codebook.centroids[nearest]
    rest = units - _multiply_rows(units, centroids)[:, None] * centroids
    rest *= spans.inverse(np.linalg.norm(rest, axis=1))[:, None]
    residuals = residual_codes.pack(residual_codes.round_numbers(rest, bits), bits)
    parts = _fit_parts(units, centroids, _unpack(residuals, bits, codebook.dimension))
    return nearest, *parts, lengths.astype(np.float16), residuals


def _fit_parts(units: Floats, centroids: Floats, residuals: Floats) -> tuple[Bytes, Bytes]:
    """Return a and b in steps, of the unit vector nearest to each of `units` in the plane."""
    shared = _multiply_rows(centroids, residuals)
    squares = _multiply_rows(residuals, residuals)
    is_centroid = centroids.any(axis=1)
    along, across = _multiply_rows(units, centroids), _multiply_rows(units, residuals)
    # least squares, up to a common factor, as the length is set to 1 below
    first = np.maximum(along * squares - across * shared, 0.0) * is_centroid
    second = np.maximum(across - along * shared, 0.0)
    square_length = first * (first + 2 * second * shared) + second**2 * squares
    scale = RESIDUAL_STEPS * spans.inverse(np.sqrt(np.maximum(square_length, 0.0)))
    residual_parts = np.rint(second * scale).clip(0, 255)
    # of the residual's part, as it is rounded, follows the centroid's for a length of 1
    kept = residual_parts / RESIDUAL_STEPS
    left = np.maximum(1 + kept**2 * (shared**2 - squares), 0.0)
    wanted = (np.sqrt(left) - kept * shared) * is_centroid
    centroid_parts = np.rint(wanted * CENTROID_STEPS).clip(0, 255)
    return centroid_parts.astype(np.uint8), residual_parts.astype(np.uint8)


def decode_turned(codes: WordCodes) -> Floats:
    """Return the turned vector of each row, float32 ``[rows, dimension]``."""
    lengths = codes.lengths.astype(np.float32)
    along = lengths * codes.centroid_parts / np.float32(CENTROID_STEPS)
    across = lengths * codes.residual_parts / np.float32(RESIDUAL_STEPS)
    vectors = _unpack(codes.residuals, codes.bits, codes.dimension)
    vectors *= across[:, None]
    vectors += codes.codebook.centroids[codes.centroids] * along[:, None]
    return vectors


def measure_norms(codes: WordCodes) -> Bytes:
    """Return the `norms` of all spans, from the codes of the words."""
    bounds = np.stack([codes.rows, codes.rows + 1], axis=1).astype(np.int32)
    norms = spans.norms(decode_turned(codes), bounds, codes.counts)
    sums = _sum_lengths(codes)
    steps = np.rint(norms * spans.inverse(sums) * NORM_STEPS)
    return np.asarray(steps.clip(0, 255), dtype=np.uint8)


def inverse_norms(codes: WordCodes) -> Floats:
    """Return 1 / |sum of the span's rows|, float32 ``[spans]``; 0 without a token."""
    return spans.inverse(codes.norms * (_sum_lengths(codes) / np.float32(NORM_STEPS)))


def _sum_lengths(codes: WordCodes) -> Floats:
    """Return the sum of the lengths of each span's rows, float32 ``[spans]``."""
    sums = spans.span_sums(codes.lengths, codes.rows, codes.counts)
    return np.maximum(sums, 0.0).astype(np.float32)


class WordQuery:
    """A unit query, ready for its products with the codes of many words.

    Args:
        query: float32 ``[dimension]``.
        codebook: The centroids of the codes.
    """

    def __init__(self, query: Floats, codebook: Codebook) -> None:
        self.codebook = codebook
        turned = turn(query[None])[0]
        self._centroids = spans.multiply(codebook.centroids, turned[:, None])[:, 0]
        self._residuals = ResidualQuery(turned)

    def multiply(self, codes: WordCodes) -> Floats:
        """Return the product of the query and the vector of each row, float32 ``[rows]``."""
        products = self._residuals.multiply(codes.residuals, codes.bits)
        products *= codes.residual_parts * np.float32(1 / RESIDUAL_STEPS)
        along = self._centroids[codes.centroids]
        along *= codes.centroid_parts * np.float32(1 / CENTROID_STEPS)
        products += along
        products *= codes.lengths
        return products


class RoughWordQuery:
    """A unit query, ready for rough cosines with the stored rows of many words.

    Args:
        query: float32 ``[dimension]``.
        codebook: The centroids of the codes.
        bits: The bits of a number of a residual.
    """

    def __init__(self, query: Floats, codebook: Codebook, bits: int) -> None:
        turned = turn(query[None])[0]
        self.centroids = spans.multiply(codebook.centroids, turned[:, None])[:, 0]
        self._residuals = RoughQuery(turned, bits)

    def multiply(self, rows: NDArray[np.void]) -> Floats:
        """Return about the cosine of the query and each row, of the type `joined_words.row_type`.

        float32 ``[rows]``.
        """
        cosines = self._residuals.multiply(rows["residual"])
        cosines *= rows["residual_part"] * np.float32(1 / RESIDUAL_STEPS)
        along = self.centroids.take(rows["centroid"], mode="clip")
        along *= rows["centroid_part"] * np.float32(1 / CENTROID_STEPS)
        cosines += along
        return cosines


def _unpack(residuals: Bytes, bits: int, dimension: int) -> Floats:
    levels = residual_codes.unpack(residuals, bits, dimension)
    return levels * residual_codes.scale(bits, dimension)


def _multiply_rows(first: Floats, second: Floats) -> Floats:
    products: Floats = np.einsum("ij,ij->i", first, second)
    return products
