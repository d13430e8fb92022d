"""The map from scores to probabilities of a topic: tuned, else measured, else rough."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_search.backends.types import IndexSpec
from hybrid_search.search.calibration import (
    MEASURED,
    ROUGH,
    TUNED,
    Calibration,
    LoadCalibration,
    find_mention_map,
)
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.tuning import Tuning, read_tuning

_log = logging.getLogger(__name__)

TUNED_WITH_OTHERS = "tuned with others"
"""The source of a topic's map if its own judgments are too few; the others are a query's."""

DESCRIPTIONS = {
    TUNED: "by its own judgments",
    TUNED_WITH_OTHERS: "by those of all topics",
    MEASURED: "as measured for the model",
    ROUGH: "a rough order: for this model none were measured, so nobody knows what is missed",
}
"""A description of each source."""


@dataclass(frozen=True, slots=True)
class MentionMap:
    """The map from scores to the probabilities of one topic.

    Attributes:
        calibration: The map.
        source: `TUNED`, `TUNED_WITH_OTHERS`, `MEASURED` or `ROUGH`.
        covariance: The errors of its intercept and slope: the variance of the intercept, the
            covariance, and the variance of the slope. For a map of many topics they include how
            much topics differ, the `spread` of the measured map.
        threshold: The least probability for the topic's wanted precision, if judgments gave one.
        is_known: Whether its probabilities are right on average. A rough map is not known, nor a
            map tuned by answers that do not go with the score.
    """

    calibration: Calibration
    source: str
    covariance: tuple[float, float, float] = (0.0, 0.0, 0.0)
    threshold: float | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class MentionMaps:
    """The maps of all topics: the tuned ones, and one for all others.

    Attributes:
        default: The map of a topic that was not tuned.
        tuning: The tuning that is used, if there is one.
        tuning_file: The file of the tuning.
    """

    default: MentionMap
    tuning: Tuning | None = None
    tuning_file: Path | None = None

    def find(self, topic: Topic) -> MentionMap:
        """Return the map of a topic."""
        tuned = self.tuning.find_map(topic) if self.tuning else None
        if tuned is None:
            return self.default
        intercept, both, slope = tuned.covariance
        source = TUNED if tuned.phrases else TUNED_WITH_OTHERS
        spread = 0.0 if tuned.phrases else self.default.calibration.spread
        return MentionMap(
            tuned.calibration,
            source,
            (intercept + _spread_of_intercepts(tuned.slope, spread), both, slope),
            tuned.threshold,
        )

    def to_dict(self, topics: Topics) -> dict[str, Any]:
        """Return the origin of the probabilities of topics, as a JSON object."""
        return {
            "source": TUNED if self.tuning else self.default.source,
            "file": str(self.tuning_file) if self.tuning_file else None,
            "judgments": self.tuning.judgments if self.tuning else 0,
            "topics": {topic.name: self.find(topic).source for topic in topics},
        }

    def describe(self, topics: Topics) -> str:
        """Return the same in words."""
        if self.tuning is None:
            return DESCRIPTIONS[self.default.source]
        names: dict[str, list[str]] = {}
        for topic in topics:
            names.setdefault(self.find(topic).source, []).append(topic.name)
        parts = (f"{DESCRIPTIONS[source]}: {', '.join(names[source])}" for source in names)
        return (
            f"tuned by {self.tuning.judgments:,} judgments, {self.tuning_file} ({'; '.join(parts)})"
        )


def choose_maps(
    topics: Topics,
    spec: IndexSpec,
    load_calibration: LoadCalibration,
    *,
    has_prior: bool,
    has_feedback: bool = False,
) -> MentionMaps:
    """Return the maps of topics, with the one of `find_mention_map` for topics that were not tuned.

    A tuning of another model is not used, nor any with feedback; a warning says so. One of too few
    judgments for a map is none.
    """
    path = topics.tuning_file
    tuning = _read_tuning(path, spec.fingerprint) if path else None
    if tuning and not (tuning.topics or tuning.others):
        tuning = None
    if tuning and has_feedback:
        _log.warning(
            "%s was tuned for phrases as they are: its probabilities are not used with feedback",
            path,
        )
        tuning = None
    calibration, source = find_mention_map(
        load_calibration,
        spec.precision,
        spec.dimension,
        has_prior=has_prior,
        has_feedback=has_feedback,
    )
    covariance = (_spread_of_intercepts(calibration.slope, calibration.spread), 0.0, 0.0)
    default = MentionMap(calibration, source, covariance, is_known=source != ROUGH)
    return MentionMaps(default, tuning, path if tuning else None)


def _spread_of_intercepts(slope: float, spread: float) -> float:
    """Return the variance of topics' own intercepts, from how far their midpoints are apart."""
    return (slope * spread) ** 2


def find_query_map(
    tuning_file: Path, fingerprint: str, phrases: Sequence[str]
) -> Calibration | None:
    """Return the map of the topic with exactly these phrases, else the map of all other topics.

    A tuning of another model is not used, and a warning says so.
    """
    tuning = _read_tuning(tuning_file, fingerprint)
    tuned = tuning.find_phrases_map(phrases) if tuning else None
    return tuned.calibration if tuned else None


def _read_tuning(path: Path, fingerprint: str) -> Tuning | None:
    """Return the tuning in a file, None if there is no file or it is of another model."""
    tuning = read_tuning(path)
    if tuning is None or tuning.model == fingerprint:
        return tuning
    _log.warning(
        "%s was tuned with model %s, and the index was written with %s: its probabilities are "
        "not used. Run hybrid-search tune again",
        path,
        tuning.model,
        fingerprint,
    )
    return None
