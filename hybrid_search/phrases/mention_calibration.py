"""The map from scores to probabilities that holds for a topic: tuned, else measured, else rough."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hybrid_search.backends.types import IndexSpec
from hybrid_search.phrases.topic_matrix import CalibrateTopic
from hybrid_search.phrases.topics import Topic, Topics
from hybrid_search.phrases.tuning import Tuning, read_tuning
from hybrid_search.search.calibration import Calibration, choose_mention_map

_log = logging.getLogger(__name__)


def choose_calibrations(
    topics: Topics, spec: IndexSpec, load_rough: Callable[[], Calibration], *, has_prior: bool
) -> tuple[CalibrateTopic, Tuning | None]:
    """Return the function that gives each topic its map, and the tuning that it uses, if any.

    A tuning of another model is not used, and a warning says so.

    Args:
        topics: The topics, with the file of their tuning if they were read from a file.
        spec: The spec of the index.
        load_rough: Returns the map by which queries are fused, for a model without a measured one.
        has_prior: Whether scores have a prior in them, as for the measured map.
    """
    tuning = read_tuning(topics.tuning_file) if topics.tuning_file else None
    if tuning and tuning.model != spec.fingerprint:
        _log.warning(
            "%s was tuned with model %s, and the index was written with %s: its probabilities are "
            "not used. Run hybrid-search tune again",
            topics.tuning_file,
            tuning.model,
            spec.fingerprint,
        )
        tuning = None
    if tuning is None:
        default = choose_mention_map(spec.fingerprint, load_rough(), has_prior=has_prior)
        return (lambda _: default), None
    used_tuning = tuning

    def calibrate(topic: Topic) -> Calibration:
        return used_tuning.find_map(topic).calibration

    return calibrate, used_tuning
