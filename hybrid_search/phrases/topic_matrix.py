"""The phrases of all topics as one matrix, and the score from which a span mentions a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.encoder.base import Encoder
from hybrid_search.phrases.topics import Topic, Topics
from hybrid_search.phrases.types import Integers
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats

DEFAULT_THRESHOLD = 0.5
"""The least probability of a mention, unless its topic says otherwise."""

TILE_COLUMNS = 32
"""Phrases that are scored together: the numbers of 64 passages then stay in a core's cache."""

CalibrateTopic = Callable[[Topic], Calibration]
"""Returns the map from scores to probabilities that holds for a topic."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicMatrix:
    """One column for each phrase of each topic, those that are not meant included.

    Attributes:
        topics: The topics, by number.
        phrases: The phrase of each column.
        vectors: Their unit vectors, float32 ``[columns, dimension]``.
        owners: The number of each column's topic, int64 ``[columns]``.
        is_meant: False for the columns of phrases that are not meant, bool ``[columns]``.
        calibrations: The map from scores to probabilities of each topic.
        limits: The least score of a mention, by topic, float32 ``[topics]``.
    """

    topics: Sequence[Topic]
    phrases: Sequence[str]
    vectors: Floats
    owners: Integers
    is_meant: NDArray[np.bool_]
    calibrations: Sequence[Calibration]
    limits: Floats

    def probabilities(self, topics: Integers, scores: Floats) -> NDArray[np.float64]:
        """Return how likely spans with these scores express these topics, float64 ``[n]``."""
        midpoints = np.array([calibration.midpoint for calibration in self.calibrations])
        slopes = np.array([calibration.slope for calibration in self.calibrations])
        logits: NDArray[np.float64] = slopes[topics] * (scores - midpoints[topics])
        return 1.0 / (1.0 + np.exp(-logits))

    def tiles(self) -> Iterator[slice]:
        """Yield the ranges of columns that are scored together."""
        for start in range(0, len(self.phrases), TILE_COLUMNS):
            yield slice(start, start + TILE_COLUMNS)


def build_matrix(encoder: Encoder, topics: Topics, calibrate: CalibrateTopic) -> TopicMatrix:
    """Encode all phrases. Raises UsageError if one has no word."""
    rows = [
        (number, phrase, is_meant)
        for number, topic in enumerate(topics)
        for phrases, is_meant in ((topic.phrases, True), (topic.not_phrases, False))
        for phrase in phrases
    ]
    calibrations = [calibrate(topic) for topic in topics]
    limits = [
        calibration.inverse_span(least_probability(topic))
        for topic, calibration in zip(topics, calibrations, strict=True)
    ]
    numbers, phrases, are_meant = zip(*rows, strict=True)
    vectors = np.stack(query_vectors(encoder, phrases))
    return TopicMatrix(
        list(topics),
        phrases,
        vectors,
        np.array(numbers, dtype=np.int64),
        np.array(are_meant, dtype=np.bool_),
        calibrations,
        np.array(limits, dtype=np.float32),
    )


def least_probability(topic: Topic) -> float:
    """Return the probability from which a span is a mention of a topic.

    Where every mention is right with at least the probability p, so is at least the share p of
    them: a wanted precision is used as threshold.
    """
    for value in (topic.threshold, topic.precision):
        if value is not None:
            return value
    return DEFAULT_THRESHOLD
