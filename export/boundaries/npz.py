"""Write ``boundaries.npz``: the same arrays give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.npz import write_arrays
from hybrid_search.text.span_prior import SpanPrior

FILE = "boundaries.npz"


def write_priors(path: Path, priors: Mapping[int, SpanPrior]) -> None:
    """Write the prior of each dimension, as arrays ``hidden.D`` and so on for each dimension D.

    `numpy.load` reads it with ``allow_pickle=False``.
    """
    arrays = dict(
        named for dimension, prior in priors.items() for named in _name_arrays(dimension, prior)
    )
    write_arrays(path, arrays)


def _name_arrays(dimension: int, prior: SpanPrior) -> Iterator[tuple[str, NDArray[Any]]]:
    boundaries = prior.boundaries
    yield f"hidden.{dimension}", boundaries.hidden.astype(np.float16)
    yield f"hidden_bias.{dimension}", boundaries.hidden_bias.astype(np.float32)
    yield f"output.{dimension}", boundaries.output.astype(np.float32)
    yield f"output_bias.{dimension}", np.array(boundaries.output_bias, dtype=np.float32)
    weights = [prior.ends, prior.inside, prior.length, boundaries.unmarked]
    yield f"weights.{dimension}", np.array(weights, dtype=np.float32)
