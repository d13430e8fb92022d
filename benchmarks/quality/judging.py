"""What twenty judgments of a topic buy, in the order in which `judge` asks and at random.

The labels of intents answer. A topic's own map is fitted to its judgments, as `tune` does, and is
measured on the mentions that were not judged; for a topic with judgments of one kind alone, the map
of all topics stands. Of a mention below `LEAST_PROBABILITY` nobody is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.quality.intent_labels import JudgedMentions
from hybrid_search.search.calibration import Calibration
from hybrid_search.topics.judging_queue import LEAST_PROBABILITY, CandidateSample, JudgingQueue
from hybrid_search.topics.logistic import calibration_error
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.tuning import Tuning, tune

JUDGMENTS = 20
PRECISION = 0.9
"""The precision that a threshold is asked for."""

DRAWS = 10
"""How often mentions are drawn at random."""

MEASURED_FROM = 0.1
"""From here on probabilities are measured by themselves: most of all mentions are below."""


def choose_as_judge(mentions: JudgedMentions, count: int = JUDGMENTS) -> list[int]:
    """Return this many mentions that `judge` asks about, one after the other."""
    sample = CandidateSample()
    for mention in mentions.matches:
        sample.add(mention)
    queue = JudgingQueue(sample.list_matches())
    numbers = {match: number for number, match in enumerate(mentions.matches)}
    rows: list[int] = []
    while len(rows) < count and (match := queue.choose()):
        rows.append(numbers[match])
        queue.answer(match, is_mention=bool(mentions.labels[rows[-1]]))
    return rows


def choose_at_random(mentions: JudgedMentions, generator: np.random.Generator) -> list[int]:
    """Return mentions drawn without replacement."""
    count = min(JUDGMENTS, len(mentions.matches))
    rows: list[int] = generator.choice(len(mentions.matches), count, replace=False).tolist()
    return rows


def compare(
    topics: Sequence[Topic], judged: JudgedMentions, shipped: Calibration, model: str
) -> dict[str, dict[str, float]]:
    """Return the figures of both orders, and those of the map that ships, without a judgment.

    Args:
        topics: The topics, each with the wanted precision.
        judged: The mentions, of these and perhaps of other topics.
        shipped: The map that ships.
        model: The fingerprint of the model.
    """
    is_asked = [match.probability >= LEAST_PROBABILITY for match in judged.matches]
    candidates = judged.select(np.array(is_asked))
    mentions = {topic.name: candidates.of_topic(topic.name) for topic in topics}

    def judge(choose: Callable[[JudgedMentions], list[int]]) -> dict[str, float]:
        rows = {name: choose(items) for name, items in mentions.items()}
        scores = {name: mentions[name].scores[numbers] for name, numbers in rows.items()}
        labels = {name: mentions[name].labels[numbers] for name, numbers in rows.items()}
        tuning = tune(topics, scores, labels, model)
        return _mean([_measure_tuned(topic, tuning, mentions, rows) for topic in topics])

    draws = [
        judge(partial(choose_at_random, generator=np.random.default_rng(seed)))
        for seed in range(DRAWS)
    ]
    untuned = [_measure(items, shipped, PRECISION) for items in mentions.values()]
    return {
        "no judgment": _mean(untuned),
        "20 at random": _mean(draws),
        "20 as judge asks": judge(choose_as_judge),
    }


def _measure_tuned(
    topic: Topic,
    tuning: Tuning,
    mentions: Mapping[str, JudgedMentions],
    judged: Mapping[str, Sequence[int]],
) -> dict[str, float]:
    """Return the figures of one topic on the mentions that were not judged."""
    items, rows = mentions[topic.name], judged[topic.name]
    tuned = tuning.find_map(topic)
    assert tuned is not None  # there are 20 judgments of each of many topics
    threshold = PRECISION if tuned.threshold is None else tuned.threshold
    is_open = np.ones(len(items.matches), dtype=np.bool_)
    is_open[rows] = False
    return {
        **_measure(items.select(is_open), tuned.calibration, threshold),
        "judged to be mentions": float(items.labels[rows].sum()),
        "topics with a map of their own": float(topic.name in tuning.topics),
    }


def _measure(
    mentions: JudgedMentions, calibration: Calibration, threshold: float
) -> dict[str, float]:
    probabilities = calibration.span(mentions.scores)
    is_likely, is_above = probabilities >= MEASURED_FROM, probabilities >= threshold
    right = float((mentions.labels & is_above).sum())
    return {
        "calibration error": calibration_error(probabilities, mentions.labels),
        "calibration error of likely mentions": calibration_error(
            probabilities[is_likely], mentions.labels[is_likely]
        ),
        "log loss": float(log_loss(mentions.labels, probabilities, labels=[False, True])),
        "topics with mentions at the threshold": float(is_above.any()),
        "precision at the threshold": right / is_above.sum() if is_above.any() else math.nan,
        "recall at the threshold": right / max(1.0, float(mentions.labels.sum())),
    }


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each figure over the rows that have it."""
    means: dict[str, float] = {}
    for name in rows[0]:
        values = [row[name] for row in rows if not math.isnan(row.get(name, math.nan))]
        if values:
            means[name] = round(float(np.mean(values)), 4)
    return means
