"""Score the spans that were judged, as mining scores them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.text import word_codes
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.topic_matrix import TopicMatrix


@dataclass(frozen=True, slots=True)
class ScoredJudgment:
    """A judgment with the score of its span: the best cosine of a meant phrase, and the prior."""

    judgment: Judgment
    score: float


def score_judgments(
    passages: Iterable[ScannedPassage],
    judgments: Sequence[Judgment],
    matrix: TopicMatrix,
    prior: SpanPrior | None,
) -> Iterator[ScoredJudgment]:
    """Yield the judgments whose spans are in these passages, each once, with their scores.

    Args:
        passages: All passages of an index.
        judgments: Judgments of topics of the matrix.
        matrix: The topics.
        prior: As for mining.
    """
    waiting: defaultdict[str, set[Judgment]] = defaultdict(set)
    for judgment in judgments:
        waiting[judgment.id].add(judgment)
    for passage in passages:
        for judgment in sorted(waiting.get(passage.document_id, ()), key=lambda item: item.place):
            number = find_span(passage, judgment.start, judgment.end)
            if number is not None:
                waiting[passage.document_id].discard(judgment)
                score = _score_span(passage, number, judgment.topic, matrix, prior)
                yield ScoredJudgment(judgment, score)


def find_span(passage: ScannedPassage, start: int, end: int) -> int | None:
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
