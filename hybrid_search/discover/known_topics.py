"""Which clauses are mentions of the topics that are known, and which topic is the nearest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import IndexSpec
from hybrid_search.discover.types import ChosenSpans
from hybrid_search.encoder.base import Encoder
from hybrid_search.search.calibration import LoadCalibration
from hybrid_search.text.types import Floats
from hybrid_search.topics.mention_calibration import choose_maps
from hybrid_search.topics.topic_matrix import TopicMatrix, build_matrix
from hybrid_search.topics.topics import Topics

Covers = Callable[[int, str | None], bool]
"""Returns whether a row, said by this speaker, is a mention of a topic."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownTopics:
    """Some topics as a matrix of phrases."""

    matrix: TopicMatrix

    @classmethod
    def load(
        cls, encoder: Encoder, load_calibration: LoadCalibration, topics: Topics, spec: IndexSpec
    ) -> KnownTopics:
        """Return the topics with the probabilities that mining gives them."""
        maps = choose_maps(topics, spec, load_calibration, has_prior=True)
        return cls(build_matrix(encoder, topics, maps.find))

    def find_covered(self, spans: ChosenSpans) -> Covers:
        """Return the function that tells which of these spans are mentions of a topic.

        As in mining, a mention is above the topic's limit, not nearer to a phrase under `not`, and
        said by one of its speakers. Conditions on metadata are ignored.
        """
        scores = spans.vectors @ self.matrix.vectors.T + spans.priors[:, None]
        are_mentions = np.stack(
            [self._find_mentions(scores, topic) for topic in range(len(self.matrix.topics))], axis=1
        )

        def covers(row: int, speaker: str | None) -> bool:
            topics = (
                self.matrix.topics[number] for number in np.flatnonzero(are_mentions[row]).tolist()
            )
            return any(not topic.speakers or speaker in topic.speakers for topic in topics)

        return covers

    def find_nearest(self, vector: Floats) -> tuple[str, float]:
        """Return the topic that has the phrase nearest to a unit vector, and its cosine."""
        columns = np.flatnonzero(self.matrix.is_meant)
        cosines = self.matrix.vectors[columns] @ vector
        best = int(cosines.argmax())
        topic = self.matrix.topics[int(self.matrix.owners[columns[best]])]
        return topic.name, float(cosines[best])

    def _find_mentions(self, scores: Floats, topic: int) -> NDArray[np.bool_]:
        matrix = self.matrix
        own = matrix.owners == topic
        meant = scores[:, own & matrix.is_meant].max(axis=1)
        not_meant = scores[:, own & ~matrix.is_meant].max(axis=1, initial=-np.inf)
        mentions: NDArray[np.bool_] = (meant >= matrix.limits[topic]) & (meant >= not_meant)
        return mentions
