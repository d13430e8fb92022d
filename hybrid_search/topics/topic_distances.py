"""Compare the phrases of topics with each other: which are far apart, and which collide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybrid_search.encoder.base import Encoder
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats
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
    phrases = {topic.name: _encode(encoder, topic.name, topic.phrases) for topic in topics}
    distances = []
    for topic in topics:
        own, not_meant = phrases[topic.name], _encode(encoder, topic.name, topic.not_phrases)
        others = (_pair(own, other) for name, other in phrases.items() if name != topic.name)
        nearest_other = max(others, key=lambda pair: pair.cosine, default=None)
        furthest = _pair(own, own, np.argmin) if len(topic.phrases) > 1 else None
        nearest_not = _pair(own, not_meant) if topic.not_phrases else None
        row = TopicDistances(topic.name, len(topic.phrases), furthest, nearest_not, nearest_other)
        distances.append(row)
    return distances


Phrases = tuple[str, Sequence[str], Sequence[Floats]]
"""Phrases of a topic, by its name, with their vectors."""


def _encode(encoder: Encoder, topic: str, phrases: Sequence[str]) -> Phrases:
    return topic, phrases, query_vectors(encoder, phrases)


def _pair(own: Phrases, other: Phrases, choose: Callable[[Floats], Any] = np.argmax) -> PhrasePair:
    """Return the nearest pair of two topics' phrases, or what else `choose` takes."""
    _, own_phrases, own_vectors = own
    topic, phrases, vectors = other
    cosines = np.stack(own_vectors) @ np.stack(vectors).T
    first, second = divmod(int(choose(cosines)), len(phrases))
    return PhrasePair(own_phrases[first], phrases[second], topic, float(cosines[first, second]))
