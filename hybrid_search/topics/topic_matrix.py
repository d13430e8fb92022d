"""The phrases of all topics as one matrix, and the score from which a span mentions a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.encoder.base import Encoder
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import Integers

DEFAULT_THRESHOLD = 0.5
"""The least probability of a mention, unless its topic says otherwise."""

TILE_COLUMNS = 32
"""Phrases that are scored together: the numbers of 64 passages then stay in a core's cache."""

FindMap = Callable[[Topic], MentionMap]
"""Returns the map from scores to probabilities that holds for a topic."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicMatrix:
    """One column for each phrase of each topic, including phrases that are not meant.

    Attributes:
        topics: The topics, by number.
        phrases: The phrase of each column.
        vectors: Their unit vectors, float32 ``[columns, dimension]``.
        owners: The number of each column's topic, int64 ``[columns]``.
        is_meant: False for the columns of phrases that are not meant, bool ``[columns]``.
        calibrations: The map from scores to probabilities of each topic.
        limits: The least score of a mention, by topic, float32 ``[topics]``.
        scanned_limits: The least score of a span that is considered; `limits`, or lower.
    """

    topics: Sequence[Topic]
    phrases: Sequence[str]
    vectors: Floats
    owners: Integers
    is_meant: NDArray[np.bool_]
    calibrations: Sequence[Calibration]
    limits: Floats
    scanned_limits: Floats

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


def build_matrix(
    encoder: Encoder, topics: Topics, find_map: FindMap, scanned_probability: float = 1.0
) -> TopicMatrix:
    """Encode all phrases, and find the limits of each topic.

    Args:
        encoder: An encoder with the dimension of the index.
        topics: The topics.
        find_map: Returns the map of a topic.
        scanned_probability: Spans of at least this probability are considered besides mentions.

    Returns:
        The matrix. UsageError is raised if a phrase has no word.
    """
    rows = [
        (number, phrase, is_meant)
        for number, topic in enumerate(topics)
        for phrases, is_meant in ((topic.phrases, True), (topic.not_phrases, False))
        for phrase in phrases
    ]
    maps = [find_map(topic) for topic in topics]
    least = [
        least_probability(topic, used_map) for topic, used_map in zip(topics, maps, strict=True)
    ]
    scanned = [min(probability, scanned_probability) for probability in least]
    numbers, phrases, are_meant = zip(*rows, strict=True)
    vectors = np.stack(query_vectors(encoder, phrases))
    return TopicMatrix(
        list(topics),
        phrases,
        vectors,
        np.array(numbers, dtype=np.int64),
        np.array(are_meant, dtype=np.bool_),
        [used_map.calibration for used_map in maps],
        _invert(maps, least),
        _invert(maps, scanned),
    )


def _invert(maps: Sequence[MentionMap], probabilities: Sequence[float]) -> Floats:
    """Return the score of each topic's spans with this probability, float32 ``[topics]``."""
    pairs = zip(maps, probabilities, strict=True)
    scores = [used_map.calibration.inverse_span(probability) for used_map, probability in pairs]
    return np.array(scores, dtype=np.float32)


def least_probability(topic: Topic, used_map: MentionMap) -> float:
    """Return the probability from which a span is a mention of a topic.

    Where every mention is right with at least the probability p, so is at least the share p of
    them: a wanted precision is used as threshold, unless judgments gave a better one.
    """
    if topic.threshold is not None:
        return topic.threshold
    if topic.precision is None:
        return DEFAULT_THRESHOLD
    return topic.precision if used_map.threshold is None else used_map.threshold
