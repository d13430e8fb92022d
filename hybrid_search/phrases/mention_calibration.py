"""The map from scores to probabilities that holds for a topic: tuned, else measured, else rough."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from hybrid_search.backends.types import IndexSpec
from hybrid_search.phrases.topic_matrix import CalibrateTopic
from hybrid_search.phrases.topics import Topic, Topics
from hybrid_search.phrases.tuning import Tuning, read_tuning
from hybrid_search.search.calibration import Calibration, choose_mention_map

_log = logging.getLogger(__name__)


def choose_calibrations(
    topics: Topics,
    spec: IndexSpec,
    load_rough: Callable[[], Calibration],
    *,
    has_prior: bool,
    has_feedback: bool = False,
) -> tuple[CalibrateTopic, Tuning | None]:
    """Return the function that gives each topic its map, and the tuning that it uses, if any.

    A tuning of another model is not used, and none with feedback; a warning says so.

    Args:
        topics: The topics, with the file of their tuning if they were read from a file.
        spec: The spec of the index.
        load_rough: Returns the map by which queries are fused, for a model without a measured one.
        has_prior: Whether scores have a prior in them, as for the measured map.
        has_feedback: Whether the phrases are moved by feedback, which no tuning knows.
    """
    path = topics.tuning_file
    tuning = _read_tuning(path, spec.fingerprint) if path else None
    if tuning and has_feedback:
        _log.warning(
            "%s was tuned for phrases as they are: its probabilities are not used with feedback",
            path,
        )
        tuning = None
    if tuning is None:
        default = choose_mention_map(
            spec.fingerprint, load_rough(), has_prior=has_prior, has_feedback=has_feedback
        )
        return (lambda _: default), None
    used_tuning = tuning

    def calibrate(topic: Topic) -> Calibration:
        return used_tuning.find_map(topic).calibration

    return calibrate, used_tuning


def find_query_map(
    tuning_file: Path, fingerprint: str, phrases: Sequence[str]
) -> Calibration | None:
    """Return the map of the topic with exactly these phrases, else that of all other topics.

    A tuning of another model is not used, and a warning says so.

    Args:
        tuning_file: What `hybrid-search tune` has written.
        fingerprint: The model of the index.
        phrases: The phrases of a query.
    """
    tuning = _read_tuning(tuning_file, fingerprint)
    return tuning.find_phrases_map(phrases).calibration if tuning else None


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
