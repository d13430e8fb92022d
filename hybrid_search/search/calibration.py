"""Fixed monotone maps of both scores onto [0, 1], fitted on dev sets and shipped with the model as
``calibration.json``.

Cosines live in a narrow band and BM25 does not: unmapped, or mapped by each list's own extremes, a
combination at alpha 0.5 is a lexical ranking in disguise. Because the maps are fixed, a score does
not depend on what else was found, and a threshold on it means something.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import ModelError

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosine: a logistic with `midpoint` and `slope`.

    BM25, on Lucene's scale: s / (s + saturation * terms).
    """

    midpoint: float = 0.5
    slope: float = 10.0
    saturation: float = 1.0

    def cosine(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosines on [0, 1]."""
        return 1.0 / (1.0 + np.exp(-self.slope * (scores - self.midpoint)))

    def bm25(self, scores: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
        """BM25 scores on [0, 1), for a phrase of so many distinct terms."""
        half = self.saturation * max(terms, 1)
        return 1.0 - half / (
            scores + half
        )  # s / (s + half), in a form that rounding cannot turn round: each step keeps the order


def load(folder: Path, precision: str, dimension: int | None = None) -> Calibration:
    """The calibration for passages that were encoded in `precision`, with vectors of `dimension`
    numbers where those have one of their own; for a folder that was never calibrated, the
    uncalibrated middle.

    Raises ModelError for a file that cannot be read.
    """
    path = folder / FILE
    if not path.is_file():
        return Calibration()
    try:
        calibrations: dict[str, Any] = json.loads(path.read_text())["precisions"]
        parameters = (
            calibrations.get(f"{precision}-{dimension}")
            or calibrations.get(precision)
            or next(iter(calibrations.values()))
        )
        return Calibration(**{name: float(value) for name, value in parameters.items()})
    except (ValueError, KeyError, TypeError, StopIteration, AttributeError) as error:
        raise ModelError(
            f"{path} cannot be read ({error!r}): make it again with python -m benchmarks.quality.calibrate"
        ) from error
