"""The codebook of a model, read from ``codebook.npz``, which `export.codebook` writes.

The file has one array, ``centroids``, int8 ``[centroids, dimension]``, for vectors in full. Those of
smaller vectors are cut from it.
"""

from __future__ import annotations

import io
import os
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from hybrid_search.encoder.model_folder import CODEBOOK, read_file, read_settings
from hybrid_search.errors import ModelError
from hybrid_search.text import codebook
from hybrid_search.text.codebook import Codebook

MOST_CENTROIDS = 1 << 16
"""The number of a centroid is stored in two bytes."""


@lru_cache(maxsize=16)
def load(folder: Path, dimension: int) -> Codebook:
    """Return the codebook of a model folder for vectors of a dimension.

    It is the plain one if the model has none. A file that ``encoder.json`` does not list is ignored,
    as it may belong to a previous model. Its digest is checked with the model's. Stored codes can be
    read in this process from now on.

    Raises:
        ModelError: If the file cannot be read, or its array is of another shape or type.
    """
    path = folder / CODEBOOK
    settings = read_settings(folder)
    if not os.path.lexists(path) or CODEBOOK not in settings.sha256:
        return codebook.plain(dimension)
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as arrays:
            centroids = arrays["centroids"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{path} cannot be used ({error!r}): copy it again from where the model came from"
        ) from error
    has_shape = centroids.ndim == 2 and centroids.shape[1] == settings.dimension
    if not has_shape or centroids.dtype != np.int8 or not 0 < len(centroids) <= MOST_CENTROIDS:
        raise ModelError(
            f"{path} has centroids of shape {centroids.shape} and type {centroids.dtype}, and not "
            f"int8 of {settings.dimension} numbers: copy it again from where the model came from"
        )
    return codebook.remember(Codebook.from_codes(centroids, dimension))
