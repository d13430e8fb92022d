"""Feedback for topics: phrases moved to what the index says in their place, before it is mined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import rank
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.query import DEFAULTS, WINDOW
from hybrid_search.text.filters import Condition
from hybrid_search.text.span_filter import SpanFilter
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.topic_matrix import TopicMatrix


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

    Each is searched as by a query with feedback. Phrases that are not meant stay as they are.

    Args:
        matrix: The phrases of all topics.
        backend: The store that holds the index.
        index: The index that will be mined.
        conditions: The conditions of each topic on metadata.
        maps: By which queries are fused.
        prior: What spans are chosen by beside the cosine, if anything.
        documents: How many of the best documents count, each by its best span.
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
