"""Tune the topics of a file: score the judged spans in an index, and fit probabilities to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import (
    ROUGH,
    Calibration,
    LoadCalibration,
    find_mention_map,
)
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.topics.judged_spans import ScoredJudgment, score_judgments
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.logistic import USUAL_SLOPE, Labels, Scores
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.topic_matrix import build_matrix
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.tuning import Tuning, tune, write_tuning

UNKNOWN_MAP = MentionMap(Calibration(), ROUGH)
"""A placeholder for the maps of the topics: only scores are needed here."""


def tune_topics(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    topics: Topics,
    judgments: Sequence[Judgment],
    index: str,
) -> Tuning:
    """Return the maps that fit the judgments, and write them beside the file of the topics.

    A judgment is not used if its topic is not among the topics, or its span not in the index.

    Args:
        backend: The store that holds the index.
        encoder: The full encoder of the model.
        load_calibration: Returns the maps of the model.
        topics: The topics.
        judgments: The answers about spans.
        index: The index that the spans are in.

    Raises:
        UsageError: If no judgment can be used, or all are of one kind.
    """
    spec, _ = backend.read_head(index)
    index_encoder = match_encoder_to_index(encoder, index, spec)
    matrix = build_matrix(index_encoder, topics, lambda _: UNKNOWN_MAP)
    names = {topic.name for topic in topics}
    usable = [judgment for judgment in judgments if judgment.topic in names]
    passages = backend.scan_codes(index)
    scored = list(score_judgments(passages, usable, matrix, span_prior(index_encoder)))
    if not scored:
        raise UsageError(
            f"none of {len(judgments)} judgments belongs to index {index!r} and to a topic of "
            "the file: name the index and the topics that were judged"
        )

    measured, source = find_mention_map(
        load_calibration,
        spec.precision,
        spec.dimension,
        has_prior=span_prior(index_encoder) is not None,
    )
    usual_slope = USUAL_SLOPE if source == ROUGH else measured.slope
    tuning = _fit(topics, scored, spec.fingerprint, usual_slope)
    if topics.tuning_file:
        write_tuning(topics.tuning_file, tuning)
    return tuning


def _fit(
    topics: Topics, scored: Sequence[ScoredJudgment], model: str, usual_slope: float
) -> Tuning:
    scores: dict[str, Scores] = {}
    labels: dict[str, Labels] = {}
    for topic in topics:
        rows = [row for row in scored if row.judgment.topic == topic.name]
        scores[topic.name] = np.array([row.score for row in rows], dtype=np.float64)
        labels[topic.name] = np.array([row.judgment.is_mention for row in rows], dtype=np.bool_)
    return tune(list(topics), scores, labels, model, usual_slope)
