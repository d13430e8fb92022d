"""The span prior of a model, read from ``boundaries.npz``, which `export.boundaries` writes.

For each dimension D of the model the file has the arrays ``hidden.D``, ``hidden_bias.D``,
``output.D`` and ``output_bias.D`` of a `BoundaryModel`, and in ``weights.D`` the three weights of a
`SpanPrior` and the boundary model's `unmarked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from hybrid_search.encoder.model_folder import BOUNDARIES, read_arrays
from hybrid_search.text.boundaries import BoundaryModel
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats

WEIGHTS = 4
"""The number of values in ``weights.D``: ends, inside, length, and unmarked."""


@lru_cache(maxsize=16)
def load(folder: Path, dimension: int) -> SpanPrior | None:
    """Return the span prior of a model folder for vectors of a dimension.

    None if the model has no prior for this dimension. Like the model, the prior is read once per
    process. Raises ModelError if the file cannot be read, or its arrays are inconsistent.
    """
    return read_arrays(folder, BOUNDARIES, lambda arrays: _build_prior(arrays, dimension))


def _build_prior(arrays: Mapping[str, Floats], dimension: int) -> SpanPrior | None:
    """Return the prior of one dimension, if any; raise ValueError if arrays are inconsistent."""
    if f"weights.{dimension}" not in arrays:
        return None
    names = ("hidden", "hidden_bias", "output", "output_bias", "weights")
    parameters = [
        np.array(arrays[f"{name}.{dimension}"], dtype=np.float32, order="C") for name in names
    ]
    hidden, hidden_bias, output, output_bias, weights = parameters
    units = len(output)
    shapes = [array.shape for array in parameters]
    expected = [(2 * dimension, units), (units,), (units,), (), (WEIGHTS,)]
    if shapes != expected:
        raise ValueError(f"its arrays for {dimension} have shapes {shapes}, and not {expected}")
    if not all(np.isfinite(array).all() for array in parameters):
        raise ValueError(f"its arrays for {dimension} hold values that are not finite numbers")
    *prior_weights, unmarked = map(float, weights)
    boundaries = BoundaryModel(hidden, hidden_bias, output, float(output_bias), unmarked)
    return SpanPrior(boundaries, *prior_weights)
