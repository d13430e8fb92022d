"""The phrases of all topics as one matrix, and the score from which a span mentions a topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.encoder.base import Encoder
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import rank
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.search.query import DEFAULTS, WINDOW
from hybrid_search.text.best_passages import SpanFilter
from hybrid_search.text.filters import Condition
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import Integers

DEFAULT_THRESHOLD = 0.5
"""The least probability of a mention, unless its topic says otherwise."""

DOUBTFUL = 0.1
"""The probability from which a span below its threshold counts against a ``not``.

Less probable ones would change the probability of a match by less than a tenth.
"""

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
        return 1.0 / (1.0 + np.exp(-self.log_odds(topics, scores)))

    def log_odds(self, topics: Integers, scores: Floats) -> NDArray[np.float64]:
        """Return the log odds of these probabilities, float64 ``[n]``."""
        midpoints = np.array([calibration.midpoint for calibration in self.calibrations])
        slopes = np.array([calibration.slope for calibration in self.calibrations])
        log_odds: NDArray[np.float64] = slopes[topics] * (scores - midpoints[topics])
        return log_odds


def build_matrix(
    encoder: Encoder, topics: Topics, find_map: FindMap, scanned_probability: float = 1.0
) -> TopicMatrix:
    """Return the phrases, encoded in the dimension of the index, with the limits of each topic.

    Spans of at least `scanned_probability` are considered besides mentions, and doubtful ones of
    topics under a ``not``. UsageError is raised if a phrase has no word.
    """
    rows = [
        (number, phrase, is_meant)
        for number, topic in enumerate(topics)
        for phrases, is_meant in ((topic.phrases, True), (topic.not_phrases, False))
        for phrase in phrases
    ]
    numbers, phrases, are_meant = zip(*rows, strict=True)
    maps = [find_map(topic) for topic in topics]
    calibrations = [used_map.calibration for used_map in maps]
    least = [least_probability(*pair) for pair in zip(topics, maps, strict=True)]
    denied = topics.list_denied()
    floors = [DOUBTFUL if topic.name in denied else 1.0 for topic in topics]
    pairs = zip(least, floors, strict=True)
    scanned = [min(*pair, scanned_probability) for pair in pairs]
    vectors = np.stack(query_vectors(encoder, phrases))
    return TopicMatrix(
        list(topics),
        phrases,
        vectors,
        np.array(numbers, dtype=np.int64),
        np.array(are_meant, dtype=np.bool_),
        calibrations,
        _invert(calibrations, least),
        _invert(calibrations, scanned),
    )


def _invert(calibrations: Sequence[Calibration], probabilities: Sequence[float]) -> Floats:
    """Return the score of each topic's spans with this probability, float32 ``[topics]``."""
    pairs = zip(calibrations, probabilities, strict=True)
    scores = [calibration.inverse_span(probability) for calibration, probability in pairs]
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


def add_feedback_to_topics(
    matrix: TopicMatrix,
    backend: Backend,
    index: str,
    conditions: Sequence[Sequence[Condition]],
    maps: Calibration,
    prior: SpanPrior | None,
    documents: int,
) -> TopicMatrix:
    """Return the matrix with each phrase moved to the best spans of its best documents.

    Each is searched as by a query with feedback, under the conditions of its topic. Phrases that
    are not meant stay as they are.
    """
    vectors = matrix.vectors.copy()
    for column in np.flatnonzero(matrix.is_meant).tolist():
        topic = int(matrix.owners[column])
        request = Request(
            matrix.phrases[column],
            vectors[column],
            WINDOW,
            tuple(conditions[topic]),
            prior=prior,
            span_filter=_build_filter(matrix, topic),
        )
        answer = rank(backend, index, request, DEFAULTS["fusion"], DEFAULTS["alpha"], maps)
        vectors[column] = add_feedback(request, answer.passages, documents).vector
    return replace(matrix, vectors=vectors)


def _build_filter(matrix: TopicMatrix, topic: int) -> SpanFilter | None:
    """Return which spans a topic may be moved to: of its speakers, not of what is not meant."""
    speakers = matrix.topics[topic].speakers
    is_opposed = (matrix.owners == topic) & ~matrix.is_meant
    if not speakers and not is_opposed.any():
        return None
    return SpanFilter(speakers, list(matrix.vectors[is_opposed]))
