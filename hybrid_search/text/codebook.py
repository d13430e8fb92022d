"""The codebook of a model: the centroids that the stored codes of words refer to, and a rotation.

Vectors are turned by an orthogonal matrix before they are rounded. In a model of nested sizes the
first numbers are the largest, and few bits would cut them off; turned, all are about as large, and
cosines are the same. Centroids are fitted once for a model (`export.codebook`), so the codes of a
text are the same in every index, and nothing is fitted when an index is written.
"""

from __future__ import annotations

import copyreg
import zlib
from functools import lru_cache
from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import ModelError
from hybrid_search.text import spans
from hybrid_search.text.types import Codebook, Codes, Floats

PLAIN, PLAIN_NAME = 0, "plain"
"""The identity and name of the codebook without centroids, for models that have none of their own.

Others are named by their identity in hexadecimal digits.
"""


COMPARED_NUMBERS = 128
"""The numbers of a vector by which its nearest centroid is found."""

COMPARED_SCALE = 254.0
"""The factor for unit vectors of these numbers: more than a half is cut off."""


def read_centroids(codes: Codes, dimension: int) -> Codebook:
    """Return the codebook of centroids that are cut to their first `dimension` numbers.

    `codes` are int8 ``[centroids, numbers]``, each row in a scale of its own.
    """
    cut = np.ascontiguousarray(codes[:, :dimension])
    lengths = np.linalg.norm(cut.astype(np.float32), axis=1, keepdims=True)
    units: Floats = (cut * spans.inverse(lengths)).astype(np.float32)
    centroids: Floats = units @ rotation(dimension)
    packed = numkong.dots_pack(_round_first_numbers(units), dtype="int8")
    return Codebook(centroids, identify(codes), packed)


def find_nearest(vectors: Floats, codebook: Codebook) -> NDArray[np.uint16]:
    """Return the number of the centroid that is nearest to each vector, which is not turned.

    Compared are the first numbers as int8, which takes less than half the time of all, and
    explains .2% less of the energy: of two that are about as near either may be chosen.
    """
    if codebook.packed is None or not len(vectors):
        return np.zeros(len(vectors), np.uint16)
    products = np.asarray(numkong.dots_packed(_round_first_numbers(vectors), codebook.packed))
    return np.asarray(products.argmax(axis=1), dtype=np.uint16)


def _round_first_numbers(vectors: Floats) -> Codes:
    """Return the directions of vectors by their first numbers, int8 in the same scale."""
    first = vectors[:, :COMPARED_NUMBERS]
    inverse = spans.inverse(np.linalg.norm(first, axis=1))[:, None]
    return np.asarray(
        np.rint(first * inverse * np.float32(COMPARED_SCALE)).clip(-127, 127), np.int8
    )


def identify(codes: Codes) -> int:
    """Return the identity of the codebook of these centroids, which is not `PLAIN`."""
    return max(PLAIN + 1, zlib.crc32(codes.tobytes()))


@lru_cache(maxsize=16)
def rotation(dimension: int) -> Floats:
    """Return the matrix that turns vectors, float32 ``[dimension, dimension]``.

    It is that of the sine transform (DST-I): orthogonal, symmetric, and so its own inverse.
    """
    numbers = np.arange(1, dimension + 1, dtype=np.int64)
    halves = np.outer(numbers, numbers) % (2 * dimension + 2)  # a sine is exact for small arguments
    matrix = np.sqrt(2 / (dimension + 1)) * np.sin(np.pi / (dimension + 1) * halves)
    return np.asarray(matrix, dtype=np.float32)


def turn(vectors: Floats) -> Floats:
    """Return vectors turned, float32 ``[rows, dimension]``; turned twice they are as before."""
    return spans.multiply(vectors, rotation(vectors.shape[1]))


@lru_cache(maxsize=16)
def plain(dimension: int) -> Codebook:
    """Return the codebook of a model that has no centroids."""
    no_centroid = np.zeros((1, dimension), np.float32)
    return Codebook(no_centroid, PLAIN, None)


_loaded: dict[tuple[int, int], Codebook] = {}
"""The codebooks of the models of this process, by identity and dimension."""


def remember(codebook: Codebook) -> Codebook:
    """Return `codebook`, which stored codes in this process are read with from now on."""
    return _loaded.setdefault((codebook.identity, codebook.dimension), codebook)


def find_by_name(name: str, dimension: int) -> Codebook:
    """Return the codebook that the spec of an index names.

    Raises:
        ModelError: If no model with it was loaded.
    """
    used = find(PLAIN if name == PLAIN_NAME else int(name, 16), dimension)
    if used is None:
        raise ModelError(
            f"the index was written with the codebook {name} of {dimension} numbers, which no "
            "loaded model has: query with the model that the index was written with"
        )
    return used


def find(identity: int, dimension: int) -> Codebook | None:
    """Return the codebook that stored codes name, None if no model with it was loaded."""
    return plain(dimension) if identity == PLAIN else _loaded.get((identity, dimension))


def _restore(centroids: Floats, identity: int) -> Codebook:
    """Return the codebook that another process sent, remembered here from now on."""
    known = find(identity, centroids.shape[1])
    if known is not None:
        return known
    packed = numkong.dots_pack(_round_first_numbers(turn(centroids)), dtype="int8")
    return remember(Codebook(centroids, identity, packed))


def _reduce(codebook: Codebook) -> tuple[Any, tuple[Floats, int]]:
    return _restore, (codebook.centroids, codebook.identity)


copyreg.pickle(Codebook, _reduce)  # what numkong packs cannot be sent
