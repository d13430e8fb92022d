"""Tune the topics of a file: score the judged spans in an index, and fit probabilities to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import ScannedPassage
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import (
    ROUGH,
    Calibration,
    LoadCalibration,
    find_mention_map,
)
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.text import word_codes
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.logistic import USUAL_SLOPE, Labels, Scores
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.topic_matrix import TopicMatrix, build_matrix
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

    Raises:
        UsageError: If no judgment can be used, or all are of one kind.
    """
    spec, _ = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    prior = span_prior(encoder)
    matrix = build_matrix(encoder, topics, lambda _: UNKNOWN_MAP)
    names = {topic.name for topic in topics}
    # answers about calls correct shares, and must tell more than the map knows already
    usable = [row for row in judgments if row.topic in names and not row.call]
    scored = list(score_judgments(backend.scan_codes(index), usable, matrix, prior))
    if not scored:
        raise UsageError(
            f"none of {len(judgments)} judgments belongs to index {index!r} and to a topic of "
            "the file: name the index and the topics that were judged"
        )
    measured, source = find_mention_map(
        load_calibration, spec.precision, spec.dimension, has_prior=prior is not None
    )
    scores: dict[str, Scores] = {}
    labels: dict[str, Labels] = {}
    for name in names:
        rows = [row for row in scored if row[0].topic == name]
        scores[name] = np.array([score for _, score in rows], dtype=np.float64)
        labels[name] = np.array([judgment.is_mention for judgment, _ in rows], dtype=np.bool_)
    usual_slope = USUAL_SLOPE if source == ROUGH else measured.slope
    tuning = tune(list(topics), scores, labels, spec.fingerprint, usual_slope)
    if topics.tuning_file:
        write_tuning(topics.tuning_file, tuning)
    return tuning


def score_judgments(
    passages: Iterable[ScannedPassage],
    judgments: Sequence[Judgment],
    matrix: TopicMatrix,
    prior: SpanPrior | None,
) -> Iterator[tuple[Judgment, float]]:
    """Yield the judgments whose spans are in these passages, each once, with their scores.

    The passages are all of an index, and the judgments are of topics of the matrix.
    """
    waiting: defaultdict[str, set[Judgment]] = defaultdict(set)
    for judgment in judgments:
        waiting[judgment.id].add(judgment)
    for passage in passages:
        for judgment in sorted(waiting.get(passage.document_id, ()), key=lambda item: item.place):
            number = _find_span(passage, judgment.start, judgment.end)
            if number is not None:
                waiting[passage.document_id].discard(judgment)
                score = _score_span(passage, number, judgment.topic, matrix, prior)
                yield judgment, score


def _find_span(passage: ScannedPassage, start: int, end: int) -> int | None:
    """Return the number of the span at a place of a document, None if the passage has none."""
    words, counts = passage.tokens.words, passage.tokens.counts
    first_words = np.flatnonzero(words[:, 0] == start - passage.start)
    last_words = np.flatnonzero(words[:, 1] == end - passage.start)
    if not (len(first_words) and len(last_words)):
        return None
    first, last = int(first_words[0]), int(last_words[0])
    if not 0 <= last - first < counts[first]:
        return None
    return int(counts[:first].sum(dtype=np.int64)) + last - first


def _score_span(
    passage: ScannedPassage, number: int, topic: str, matrix: TopicMatrix, prior: SpanPrior | None
) -> float:
    owner = [item.name for item in matrix.topics].index(topic)
    columns = np.flatnonzero((matrix.owners == owner) & matrix.is_meant)
    cosines = [word_codes.cosines(vector, passage.tokens) for vector in matrix.vectors[columns]]
    best = max(float(column[number]) for column in cosines)
    return best + (float(prior.score_spans(passage.tokens)[number]) if prior else 0.0)
