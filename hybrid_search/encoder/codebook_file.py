"""The codebook of a model, read from ``codebook.npz``, which `export.codebook` writes.

The file has one array, ``centroids``, int8 ``[centroids, dimension]``, for vectors in full. The
centroids of smaller vectors are cut from it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from hybrid_search.encoder.model_folder import CODEBOOK, read_arrays, read_settings
from hybrid_search.text import codebook
from hybrid_search.text.types import Codebook, Codes

MOST_CENTROIDS = 1 << 16
"""The number of a centroid is stored in two bytes."""


@lru_cache(maxsize=16)
def load(folder: Path, dimension: int) -> Codebook:
    """Return the codebook of a model folder for vectors of a dimension.

    It is the plain one if the model has none. From now on this process can read codes that were
    stored with it. Raises ModelError if the file cannot be read, or its array is of another shape.
    """
    centroids = _read_centroids(folder)
    if centroids is None:
        return codebook.plain(dimension)
    return codebook.remember(codebook.read_centroids(centroids, dimension))


@lru_cache(maxsize=16)
def find_name(folder: Path) -> str:
    """Return the name of the codebook of a model folder; raises ModelError, as `load` does."""
    centroids = _read_centroids(folder)
    return codebook.PLAIN_NAME if centroids is None else f"{codebook.identify(centroids):08x}"


@lru_cache(maxsize=4)
def _read_centroids(folder: Path) -> Codes | None:
    return read_arrays(
        folder,
        CODEBOOK,
        lambda arrays: _check_centroids(arrays["centroids"], read_settings(folder).dimension),
    )


def _check_centroids(centroids: Codes, dimension: int) -> Codes:
    """Return the centroids of a model; raise ValueError if their shape or type is another."""
    has_shape = centroids.ndim == 2 and centroids.shape[1] == dimension
    if not has_shape or centroids.dtype != np.int8 or not 0 < len(centroids) <= MOST_CENTROIDS:
        raise ValueError(
            f"its centroids have shape {centroids.shape} and type {centroids.dtype}, and are not "
            f"int8 of {dimension} numbers"
        )
    return np.ascontiguousarray(centroids)
