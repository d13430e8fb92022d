"""Map both scores onto [0, 1] by fixed monotone maps.

They are fitted on dev sets and shipped with the model as ``calibration.json``. Cosines lie in a
narrow band and BM25 does not: unmapped, or mapped by each list's own extremes, a combination at
alpha 0.5 is a lexical ranking in disguise. Because the maps are fixed, a score does not depend on
the other candidates, and a threshold on it means something.
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
"""What spans are chosen and ranked by: the sum of cosine and prior, or the cosine alone."""

MENTIONS, MOVED_MENTIONS = "mentions", "mentions with feedback"
"""Maps from that sum to the probability of a mention: of phrases as they are, and as moved."""

KEYS = {SCORE: "scores", COSINE: "precisions", MENTIONS: MENTIONS, MOVED_MENTIONS: MOVED_MENTIONS}
"""Where the file has the maps of each: by precision, those of mentions by dimension."""

TUNED, MEASURED, ROUGH = "tuned", "measured", "rough"
"""Where probabilities come from: somebody's judgments, labels, or the map of the fusion."""

RANGES = {
    "midpoint": (-2.0, 2.0),
    "slope": (1e-6, 1e6),
    "saturation": (1e-6, 1e6),
    "spread": (0.0, 2.0),
}
"""Smallest and largest value of each parameter: with these every score is a number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The parameters of both maps.

    Spans: a logistic with `midpoint` and `slope`. BM25, on Lucene's scale: s / (s + saturation *
    terms). `spread` is that of mentions alone: the standard deviation of the midpoints of topics,
    each fitted by itself.

    Raises:
        ValueError: If one is not a number in its range.
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
        """Return scores of spans on [0, 1]."""
        return 1.0 / (1.0 + np.exp(-self.slope * (scores - self.midpoint)))

    def inverse_span(self, probability: float) -> float:
        """Return the score of a span that is mapped to `probability`, which is between 0 and 1."""
        return self.midpoint + math.log(probability / (1 - probability)) / self.slope

    def bm25(self, scores: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
        """Return BM25 scores on [0, 1), for a phrase with this number of distinct terms."""
        half = self.saturation * max(terms, 1)
        # s / (s + half), in a form whose rounding keeps the order: each step does
        return 1.0 - half / (scores + half)


LoadCalibration = Callable[[str, int, str], Calibration]
"""Returns a model's maps for passages of a precision and a dimension, of a kind of `KEYS`."""


def find_mention_map(
    load_calibration: LoadCalibration,
    precision: str,
    dimension: int,
    *,
    has_prior: bool,
    has_feedback: bool = False,
) -> tuple[Calibration, str]:
    """Return the map from scores of spans to the probability that they are mentions.

    Args:
        load_calibration: Returns the model's maps.
        precision: That of the passages.
        dimension: That of the vectors.
        has_prior: Whether scores have a prior in them, as for the measured maps.
        has_feedback: Whether the phrases were moved by feedback.

    Returns:
        The map, and `MEASURED` or `ROUGH`. A rough one is that by which queries are fused: it
        orders spans, and nobody knows what share of them it finds.
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

    The kinds are those of `KEYS`. Spans that are chosen by `SCORE` have maps of their own, if the
    model has them. Those of mentions are measured for each dimension; without them they are those
    of `SCORE`.

    A dimension without maps of its own has those of its precision, an unknown precision those of
    the first one. A folder that was never calibrated has the defaults. Like the model it is read
    once a process; its digest is checked with those of the model.

    Raises:
        ModelError: If the file cannot be read, or a parameter is out of its range.
    """
    path = folder / CALIBRATION
    if not os.path.lexists(path):  # a link to nothing is there
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
    """Return the parameters of a kind that a file has for such passages."""
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
