"""Tuned probabilities: fitted to judgments, one map for each topic, and one for all others.

A map needs `FEWEST` judgments of both kinds, and that of all others some of `FEWEST_TOPICS` topics;
without them a topic keeps the map that it had.

They lie beside the file of topics, as ``topics.tuned.json`` beside ``topics.yaml``, since they
belong to its phrases: they hold on every index of the same model. A topic whose phrases have
changed since has the map that is for all others, until it is tuned again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_search.errors import UsageError
from hybrid_search.file_errors import explain_failure
from hybrid_search.private_files import replace_file
from hybrid_search.search.calibration import Calibration
from hybrid_search.topics.logistic import (
    USUAL_SLOPE,
    Covariance,
    Labels,
    Scores,
    bin_probabilities,
    calibration_error,
    check_kinds,
    estimate_covariance,
    find_midpoint_interval,
    fit_logistic,
    measure_concordance,
)
from hybrid_search.topics.topic import Topic

FEWEST = 20
"""Judgments from which a topic has a map of its own, and all others have one."""

FEWEST_TOPICS, FEWEST_OF_TOPIC = 3, 5
"""The fewest topics, and judgments of each, from which all others have a map.

Judgments of one topic say nothing of another, as the midpoints of topics lie far apart.
"""

THRESHOLDS = (1e-6, 1 - 1e-6)
"""The smallest and the largest threshold."""


@dataclass(frozen=True, slots=True)
class TunedMap:
    """A map from scores to probabilities, and how sure it is.

    Attributes:
        midpoint: The score at which a span is a mention with probability 0.5.
        slope: How steep the logistic is there.
        judgments: How many judgments it was fitted to.
        mentions: How many of them say yes.
        error: The expected calibration error on these judgments, 0..1.
        covariance: How far its intercept and slope may be off.
        midpoint_interval: Where the midpoint lies 95 times of 100.
        concordance: The share of pairs of a mention and another span in which the mention has the
            larger score, 0..1.
        is_chance: Whether the answers go with the score no better than by chance.
        phrases: Digest of the topic's phrases; empty for the map of all others.
        threshold: The least probability for the topic's wanted precision; None if it wants none.
        reliability: The reliability plot on these judgments: for each tenth of the probabilities
            that has some, how many, their mean probability, and the share that says yes.
    """

    midpoint: float
    slope: float
    judgments: int
    mentions: int
    error: float
    covariance: Covariance
    midpoint_interval: tuple[float, float]
    concordance: float
    is_chance: bool
    phrases: str = ""
    threshold: float | None = None
    reliability: tuple[tuple[int, float, float], ...] = ()

    @property
    def calibration(self) -> Calibration:
        """The map itself."""
        return Calibration(self.midpoint, self.slope)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The maps of some topics by their names, and that of all others.

    It is for one model. There is no map of all others if there are too few judgments, or of too few
    topics.

    Attributes:
        model: The fingerprint of the model.
        judgments: How many judgments there are.
        others: The map of all topics that have none of their own, if there is one.
        topics: The maps of topics, by their names.
        judged_topics: How many topics have at least `FEWEST_OF_TOPIC` judgments.
    """

    model: str
    judgments: int
    others: TunedMap | None
    topics: Mapping[str, TunedMap] = field(default_factory=dict)
    judged_topics: int = 0

    def find_map(self, topic: Topic) -> TunedMap | None:
        """Return the map of a topic, or that of all others if it has none for its phrases.

        Maps of answers that do not go with the score tell nothing, and are left out.
        """
        own = self.topics.get(topic.name)
        if own and own.phrases != digest_phrases(topic):
            own = None
        return _choose_map(own, self.others)

    def find_phrases_map(self, phrases: Sequence[str]) -> TunedMap | None:
        """Return the map of the topic with exactly these phrases, else that of all others."""
        digest = digest_phrases(Topic("", tuple(phrases)))
        own = (tuned for tuned in self.topics.values() if tuned.phrases == digest)
        return _choose_map(next(own, None), self.others)

    def to_dict(self) -> dict[str, Any]:
        """Return the tuning as it stands in JSON."""
        return asdict(self)


def _choose_map(*maps: TunedMap | None) -> TunedMap | None:
    """Return the first map whose answers go with the score, None if there is none."""
    return next((tuned for tuned in maps if tuned and not tuned.is_chance), None)


def digest_phrases(topic: Topic) -> str:
    """Return a digest of what a topic's scores depend on."""
    text = json.dumps([topic.phrases, topic.not_phrases])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tune(
    topics: Sequence[Topic],
    scores: Mapping[str, Scores],
    labels: Mapping[str, Labels],
    model: str,
    usual_slope: float = USUAL_SLOPE,
) -> Tuning:
    """Return the maps that fit the scores and labels of judged spans, by topic name, best.

    `usual_slope` is that of the model's measured map, which few labels leave as it is.

    UsageError is raised if all labels are of one kind.
    """
    all_scores = np.concatenate([scores[topic.name] for topic in topics])
    all_labels = np.concatenate([labels[topic.name] for topic in topics])
    check_kinds(all_labels.sum(), (~all_labels).sum())
    maps = {
        topic.name: fit_map(scores[topic.name], labels[topic.name], topic, usual_slope)
        for topic in topics
        if _are_enough(labels[topic.name])
    }
    judged_topics = sum(len(labels[topic.name]) >= FEWEST_OF_TOPIC for topic in topics)
    others = None
    if _are_enough(all_labels) and judged_topics >= FEWEST_TOPICS:
        others = fit_map(all_scores, all_labels, usual_slope=usual_slope)
    return Tuning(model, len(all_labels), others, maps, judged_topics=judged_topics)


def _are_enough(labels: Labels) -> bool:
    return len(labels) >= FEWEST and 0 < labels.sum() < len(labels)


def fit_map(
    scores: Scores,
    labels: Labels,
    topic: Topic | None = None,
    usual_slope: float = USUAL_SLOPE,
) -> TunedMap:
    """Return the map that fits judged spans best, and how sure it is."""
    calibration = fit_logistic(scores, labels, usual_slope=usual_slope)
    probabilities = calibration.span(scores)
    reliability = tuple(bin_probabilities(probabilities, labels))
    threshold = None
    if topic and topic.precision is not None:
        threshold = find_threshold(probabilities, labels, topic.precision)
    covariance = estimate_covariance(calibration, scores, usual_slope)
    interval = find_midpoint_interval(calibration, covariance)
    concordance, is_chance = measure_concordance(scores, labels)
    return TunedMap(
        calibration.midpoint,
        calibration.slope,
        len(labels),
        int(labels.sum()),
        calibration_error(probabilities, labels),
        covariance,
        interval,
        concordance,
        is_chance,
        digest_phrases(topic) if topic else "",
        threshold,
        reliability,
    )


def find_threshold(probabilities: Scores, labels: Labels, precision: float) -> float:
    """Return the least probability from which at least this share of the judged spans is right.

    If no threshold reaches it among them, the precision itself is the threshold.
    """
    order = np.argsort(-probabilities, kind="stable")
    shares = np.cumsum(labels[order]) / np.arange(1, len(order) + 1)
    reached = np.flatnonzero(shares >= precision)
    if not len(reached):
        return precision
    low, high = THRESHOLDS
    return float(np.clip(probabilities[order[reached[-1]]], low, high))


def write_tuning(path: Path, tuning: Tuning) -> None:
    """Write a tuning in place of an earlier one. Raises UsageError if it cannot be written."""
    with explain_failure(f"{path} cannot be written", "free space"):
        replace_file(path, json.dumps(tuning.to_dict(), indent=1).encode() + b"\n")


def read_tuning(path: Path) -> Tuning | None:
    """Return the tuning in a file, None if there is no file.

    Raises:
        UsageError: If it is no tuning.
    """
    try:
        values = json.loads(path.read_bytes())
        maps = {name: _parse_map(value) for name, value in values["topics"].items()}
        others = _parse_map(values["others"]) if values["others"] else None
        return Tuning(**{**values, "topics": maps, "others": others})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a file of tuned probabilities: remove it, or make it again with "
            "hybrid-search tune"
        ) from error


def _parse_map(values: Mapping[str, Any]) -> TunedMap:
    tuples = {name: tuple(values[name]) for name in ("covariance", "midpoint_interval")}
    reliability = tuple(map(tuple, values["reliability"]))
    tuned = TunedMap(**{**values, **tuples, "reliability": reliability})
    _ = tuned.calibration  # made, and so checked, here
    return tuned
