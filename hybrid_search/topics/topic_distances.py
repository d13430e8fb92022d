"""Compare the phrases of topics with each other: which are far apart, and which collide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybrid_search.encoder.base import Encoder
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topics import Topics


@dataclass(frozen=True, slots=True)
class PhrasePair:
    """Two phrases with their cosine; `topic` is the topic of the second phrase."""

    phrase: str
    other: str
    topic: str
    cosine: float


@dataclass(frozen=True, slots=True)
class TopicDistances:
    """The cosines of a topic's phrases with each other and with other topics' phrases.

    Attributes:
        topic: The topic's name.
        phrases: How many phrases it has.
        furthest: Its two phrases with the smallest cosine; None if it has one phrase.
        nearest_not: The phrase under `not` with the largest cosine; None without one.
        nearest_other: The phrase of another topic with the largest cosine; None without one.
    """

    topic: str
    phrases: int
    furthest: PhrasePair | None
    nearest_not: PhrasePair | None
    nearest_other: PhrasePair | None

    @property
    def collides(self) -> bool:
        """True if a phrase of another topic is nearer than its own phrases are to each other."""
        if self.nearest_other is None or self.furthest is None:
            return False
        return self.nearest_other.cosine > self.furthest.cosine

    def to_dict(self) -> dict[str, Any]:
        """Return the distances as a JSON object."""
        return {**asdict(self), "collides": self.collides}


def measure_distances(encoder: Encoder, topics: Topics) -> list[TopicDistances]:
    """Return the distances of each topic. Raises UsageError for a phrase without a word."""
    vectors = {topic.name: _encode(encoder, topic.phrases) for topic in topics}
    return [
        TopicDistances(
            topic.name,
            len(topic.phrases),
            _find_furthest(topic, vectors[topic.name]),
            _find_nearest_not(encoder, topic, vectors[topic.name]),
            _find_nearest_other(topic, topics, vectors),
        )
        for topic in topics
    ]


def _encode(encoder: Encoder, phrases: Sequence[str]) -> Floats:
    return np.stack(query_vectors(encoder, phrases))


def _find_furthest(topic: Topic, vectors: Floats) -> PhrasePair | None:
    if len(topic.phrases) < 2:
        return None
    cosines = vectors @ vectors.T
    first, second = divmod(int(cosines.argmin()), len(cosines))
    phrases = topic.phrases
    return PhrasePair(phrases[first], phrases[second], topic.name, float(cosines[first, second]))


def _find_nearest_not(encoder: Encoder, topic: Topic, vectors: Floats) -> PhrasePair | None:
    if not topic.not_phrases:
        return None
    not_vectors = _encode(encoder, topic.not_phrases)
    return _find_nearest(topic, vectors, topic.name, topic.not_phrases, not_vectors)


def _find_nearest_other(
    topic: Topic, topics: Topics, vectors: dict[str, Floats]
) -> PhrasePair | None:
    pairs = [
        _find_nearest(topic, vectors[topic.name], other.name, other.phrases, vectors[other.name])
        for other in topics
        if other.name != topic.name
    ]
    return max(pairs, key=lambda pair: pair.cosine, default=None)


def _find_nearest(
    topic: Topic, vectors: Floats, name: str, phrases: Sequence[str], other_vectors: Floats
) -> PhrasePair:
    cosines = vectors @ other_vectors.T
    first, second = divmod(int(cosines.argmax()), len(phrases))
    return PhrasePair(topic.phrases[first], phrases[second], name, float(cosines[first, second]))
