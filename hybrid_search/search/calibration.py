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

KEYS = {SCORE: "scores", COSINE: "precisions"}
"""Where the file has the maps of each."""

RANGES = {"midpoint": (-2.0, 2.0), "slope": (1e-6, 1e6), "saturation": (1e-6, 1e6)}
"""Smallest and largest value of each parameter: with these every score is a number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The parameters of both maps.

    Spans: a logistic with `midpoint` and `slope`. BM25, on Lucene's scale: s / (s + saturation *
    terms).

    Raises:
        ValueError: If one is not a number in its range.
    """

    midpoint: float = 0.5
    slope: float = 10.0
    saturation: float = 1.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            low, high = RANGES[name]
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}: it must be from {low:g} to {high:g}")

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


MEASURED = {"45adc67424cbdd57-288": Calibration(midpoint=1.0892, slope=16.86)}
"""From the scores of spans to the probability that they are mentions, by model fingerprint.

Fitted to labelled turns: `benchmarks.quality.mining` has the error.
"""

MEASURED_WITH_FEEDBACK = {"45adc67424cbdd57-288": Calibration(midpoint=1.1234, slope=16.52)}
"""The same for phrases that were moved by feedback, of ten documents."""

TOPIC_SPREAD = 0.11
"""The standard deviation of topics' own midpoints around that of the measured map.

That of labelled intents, each fitted by itself (`benchmarks.quality.mining`).
"""


def choose_mention_map(
    fingerprint: str, rough: Calibration, *, has_prior: bool, has_feedback: bool = False
) -> Calibration:
    """Return the map from scores of spans to the probability that they are mentions.

    Args:
        fingerprint: That of the model.
        rough: The map by which queries are fused, for a model without a measured one.
        has_prior: Whether scores have a prior in them, as for the measured maps.
        has_feedback: Whether the phrases were moved by feedback.
    """
    measured = MEASURED_WITH_FEEDBACK if has_feedback else MEASURED
    return measured.get(fingerprint, rough) if has_prior else rough


@lru_cache(maxsize=16)
def load(
    folder: Path, precision: str, dimension: int | None = None, spans_by: str = COSINE
) -> Calibration:
    """Return the calibration of a model folder for passages of a precision and a dimension.

    Spans that are chosen by `SCORE` have maps of their own, if the model has them.

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
        calibrations = table.get(KEYS[spans_by]) or table[KEYS[COSINE]]
        parameters = (
            calibrations.get(f"{precision}-{dimension}")
            or calibrations.get(precision)
            or next(iter(calibrations.values()))
        )
        return Calibration(**{name: float(value) for name, value in parameters.items()})
    except (ValueError, KeyError, TypeError, StopIteration, AttributeError) as error:
        raise ModelError(
            f"{path} cannot be used ({error!r}): copy it again from where the model came from, "
            "or calibrate the model again"
        ) from error
