"""The weight of the span leg, alpha, at which queries for the topics rank judged documents best.

Only judged documents are ranked, since nobody knows of the others whether they are right: a
*condensed list* (Sakai 2007, "Alternatives to Bpref"). Its average precision is the mean, over the
right documents, of the share of right ones up to there; a right one that the query does not find
counts as 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.search.query import DEFAULTS
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.topic import Topic

ALPHAS = tuple(tenth / 10 for tenth in range(11))
"""What is tried."""

FEWEST_TOPICS = 5
"""Topics with right and wrong documents from which an alpha is chosen."""

RESAMPLES = 200
"""Draws of the bootstrap, with a fixed seed."""

RankDocuments = Callable[[Topic, float], Sequence[str]]
"""Returns the ids of the documents that a query for a topic finds at an alpha, best first."""

Precisions = NDArray[np.float64]
"""Average precisions, float64 ``[topics, alphas]``."""


@dataclass(frozen=True, slots=True)
class TunedAlpha:
    """The alpha that ranks judged documents best, and how sure it is.

    Attributes:
        alpha: The alpha, one of `ALPHAS`.
        average_precision: The mean of the topics' average precisions at it, 0..1.
        default_precision: The same at the default alpha.
        interval: Where the best alpha lies in 95 of 100 draws of a bootstrap over the topics.
        topics: How many topics it was chosen by.
    """

    alpha: float
    average_precision: float
    default_precision: float
    interval: tuple[float, float]
    topics: int

    @property
    def topics_to_halve(self) -> int:
        """How many more judged topics would halve the interval: it shrinks with their root."""
        return 3 * self.topics


def tune_alpha(
    topics: Sequence[Topic], judgments: Sequence[Judgment], rank: RankDocuments
) -> TunedAlpha | None:
    """Return the best alpha, None if fewer than `FEWEST_TOPICS` have right and wrong documents.

    Args:
        topics: The topics, each a query by its phrases.
        judgments: What was said of spans. A document with a mention is right, any other that was
            judged is wrong.
        rank: Asks a query.
    """
    rows = []
    for topic in topics:
        right, wrong = split_documents(topic.name, judgments)
        if right and wrong:
            rankings = [rank(topic, alpha) for alpha in ALPHAS]
            rows.append([average_precision(ranking, right, wrong) for ranking in rankings])
    return choose_alpha(np.array(rows)) if len(rows) >= FEWEST_TOPICS else None


def split_documents(name: str, judgments: Sequence[Judgment]) -> tuple[set[str], set[str]]:
    """Return the documents with a mention of a topic, and the other ones that were judged."""
    answers: defaultdict[str, bool] = defaultdict(bool)
    for judgment in judgments:
        if judgment.topic == name:
            answers[judgment.id] |= judgment.is_mention
    right = {document for document, is_right in answers.items() if is_right}
    return right, answers.keys() - right


def average_precision(
    ranking: Sequence[str], right: Collection[str], wrong: Collection[str]
) -> float:
    """Return the average precision of a ranking, of which only judged documents count, 0..1."""
    judged = [document for document in ranking if document in right or document in wrong]
    is_right = np.array([document in right for document in judged], dtype=np.bool_)
    shares = np.cumsum(is_right) / np.arange(1, len(judged) + 1)
    return float(shares[is_right].sum()) / len(right)


def choose_alpha(precisions: Precisions) -> TunedAlpha:
    """Return the alpha with the best mean, float64 ``[topics, alphas]`` of average precisions."""
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(precisions), (RESAMPLES, len(precisions)))
    drawn = [ALPHAS[_find_best(precisions[rows].mean(axis=0))] for rows in draws]
    low, high = np.percentile(drawn, [2.5, 97.5])
    means = precisions.mean(axis=0)
    best, default = _find_best(means), ALPHAS.index(DEFAULTS["alpha"])
    interval = float(low), float(high)
    topics = len(precisions)
    return TunedAlpha(ALPHAS[best], float(means[best]), float(means[default]), interval, topics)


def _find_best(means: Precisions) -> int:
    """Return the number of the best alpha, of equal ones the nearest to the default."""
    distances = np.abs(np.array(ALPHAS) - DEFAULTS["alpha"])
    return int(np.lexsort((distances, -np.round(means, 9)))[0])
