"""Rank short texts for phrases: by BM25, by their best span, and by one vector a text.

Every text is scored, by the product's own BM25 and encoder; there is no index between.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from benchmarks import lucene
from benchmarks.quality import bootstrap
from benchmarks.quality.measures import evaluate
from benchmarks.quality.moved_queries import move_queries
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.search.types import Scores

BM25, BEST_SPAN, ONE_VECTOR = "bm25", "best span", "one vector a text"
BY_COSINE, FEEDBACK = "best span by cosine", "best span, feedback 10"

Rankings = list[list[int]]
"""The numbers of the texts, best first, for each phrase."""


def rank_texts(
    encoder: Encoder, texts: Sequence[str], phrases: Sequence[str]
) -> dict[str, Rankings]:
    """Return the rankings of `texts` by every system; BM25's leave out what has no term in common.

    Of equal scores the first text is first. Only a model with a prior has spans by cosine as well.
    """
    queries = means(encoder, phrases)
    scores = score_texts(encoder, texts, queries)
    moved = move_queries(encoder, texts, queries, scores.span)
    by_feedback = {FEEDBACK: score_texts(encoder, texts, moved).span}
    by_cosine = {BY_COSINE: scores.cosine} if span_prior(encoder) else {}
    tables = {BEST_SPAN: scores.span, **by_feedback, **by_cosine, ONE_VECTOR: scores.mean}
    return {
        BM25: [_order(scores, 0.0) for scores in lucene.score(texts, phrases)],
        **{name: [_order(column) for column in table.T] for name, table in tables.items()},
    }


def _order(scores: Scores, threshold: float = -np.inf) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    numbers: list[int] = order[scores[order] > threshold].tolist()
    return numbers


def summarise(
    ranked: Sequence[Sequence[Hashable]],
    right: Sequence[frozenset[Hashable]],
    names: Sequence[str],
) -> dict[str, Mapping[str, object]]:
    """Return mean and interval, over the phrases, of the measures of these names."""
    grades = [dict.fromkeys(items, 1) for items in right]
    values = evaluate(ranked, grades, names)
    return {name: bootstrap.summary(values[name]) for name in names}
