"""Fixed monotone maps of both scores onto [0, 1].

They are fitted on dev sets and shipped with the model as ``calibration.json``. Cosines lie in a
narrow band and BM25 scores do not. Without the maps, or with scores scaled by the extremes of each
list, a combination at alpha 0.5 would effectively be a lexical ranking. Because the maps are fixed,
a score does not depend on the other candidates, so a threshold on it is meaningful.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.encoder.model_folder import CALIBRATION, read_file
from hybrid_search.errors import ModelError

SCORE, COSINE = "score", "cosine"
"""How spans are chosen and ranked: by the sum of cosine and prior, or by the cosine alone."""

MENTIONS, MOVED_MENTIONS = "mentions", "mentions with feedback"
"""Maps from that sum to the probability of a mention: without feedback, and with it."""

KEYS = {SCORE: "scores", COSINE: "precisions", MENTIONS: MENTIONS, MOVED_MENTIONS: MOVED_MENTIONS}
"""The key in the file for each kind of map: by precision, for mentions by dimension."""

TUNED, MEASURED, ROUGH = "tuned", "measured", "rough"
"""The origin of probabilities: the user's judgments, labelled data, or the map of the fusion."""

RANGES = {
    "midpoint": (-2.0, 2.0),
    "slope": (1e-6, 1e6),
    "saturation": (1e-6, 1e6),
    "spread": (0.0, 2.0),
}
"""Smallest and largest value of each parameter; within these limits every score is in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The parameters of both maps.

    Spans: a logistic with `midpoint` and `slope`. BM25, on Lucene's scale: s / (s + saturation *
    terms). `spread` is used for mentions only: the standard deviation of the midpoints of
    individually fitted topics.

    Raises:
        ValueError: If a parameter is not a number within its range.
    """

    midpoint: float = 0.5
    slope: float = 10.0
    saturation: float = 1.0
    spread: float = 0.1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            low, high = RANGES[name]
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}: it must be from {low:g} to {high:g}")

    def to_dict(self) -> dict[str, float]:
        """Return the parameters of both maps by their names."""
        return {name: value for name, value in asdict(self).items() if name != "spread"}

    def span(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map span scores onto [0, 1]."""
        return 1.0 / (1.0 + np.exp(-self.slope * (scores - self.midpoint)))

    def inverse_span(self, probability: float) -> float:
        """Return the span score that maps to `probability`, a number between 0 and 1."""
        return self.midpoint + math.log(probability / (1 - probability)) / self.slope

    def bm25(self, scores: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
        """Map BM25 scores onto [0, 1), for a phrase with this number of distinct terms."""
        half = self.saturation * max(terms, 1)
        # s / (s + half), written so that rounding in each step keeps the order
        return 1.0 - half / (scores + half)


LoadCalibration = Callable[[str, int, str], Calibration]
"""Returns a model's map of one of the `KEYS`, for passages of a precision and a dimension."""


def find_mention_map(
    load_calibration: LoadCalibration,
    precision: str,
    dimension: int,
    *,
    has_prior: bool,
    has_feedback: bool = False,
) -> tuple[Calibration, str]:
    """Return the map from span scores to the probability of a mention, and its origin.

    The origin is `MEASURED`, or `ROUGH` for the map of the fusion: it orders spans, but its recall
    is unknown. The measured maps require scores with a prior; phrases moved by feedback have maps
    of their own.
    """
    rough = load_calibration(precision, dimension, SCORE if has_prior else COSINE)
    if not has_prior:
        return rough, ROUGH
    measured = load_calibration(precision, dimension, MOVED_MENTIONS if has_feedback else MENTIONS)
    return measured, MEASURED if measured != rough else ROUGH


@lru_cache(maxsize=16)
def load(
    folder: Path, precision: str, dimension: int | None = None, kind: str = COSINE
) -> Calibration:
    """Return the calibration of a model folder for passages of a precision and a dimension.

    `kind` is a key of `KEYS`. Spans chosen by `SCORE` have maps of their own, if the model has
    them. The maps of mentions are measured per dimension; a model without them uses the maps of
    `SCORE`.

    A dimension without its own maps uses the maps of its precision; an unknown precision uses the
    maps of the first precision in the file. A folder without a calibration gets the defaults. Like
    the model, the file is read once per process, and its digest is checked along with the model's.

    Raises:
        ModelError: If the file cannot be read, or a parameter is out of its range.
    """
    path = folder / CALIBRATION
    if not os.path.lexists(path):  # lexists: a dangling link must raise
        return Calibration()
    try:
        table: dict[str, Any] = json.loads(read_file(path))
        parameters = _choose(table, precision, dimension, kind)
        return Calibration(**{name: float(value) for name, value in parameters.items()})
    except (ValueError, KeyError, TypeError, StopIteration, AttributeError) as error:
        raise ModelError(
            f"{path} cannot be used ({error!r}): copy it again from where the model came from, "
            "or calibrate the model again"
        ) from error


def _choose(
    table: Mapping[str, Any], precision: str, dimension: int | None, kind: str
) -> Mapping[str, Any]:
    """Return the parameters in a file for a kind of map and such passages."""
    if kind in (MENTIONS, MOVED_MENTIONS):
        measured: Mapping[str, Any] | None = table.get(KEYS[kind], {}).get(str(dimension))
        return measured or _choose(table, precision, dimension, SCORE)
    calibrations = table.get(KEYS[kind]) or table[KEYS[COSINE]]
    chosen: Mapping[str, Any] = (
        calibrations.get(f"{precision}-{dimension}")
        or calibrations.get(precision)
        or next(iter(calibrations.values()))
    )
    return chosen
