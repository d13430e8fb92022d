"""Written topics of three kept-out trades: what is found, told apart and marked.

The topics are those of ``data/written`` whose trade is never trained on. A phrasing of a topic
ranks the turns of all these topics, those that say it and those that only look so. A turn that
looks so, and one of another topic, is wrong.

A marked span is right if it lacks at most one word of the shortest stretch that a person would mark
(`core`), and holds at most one word beyond the clause.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks import lucene, results
from benchmarks.quality import bootstrap
from benchmarks.quality.measures import MAP, evaluate
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.systems import Range
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.search.hit import Span
from hybrid_search.search.span_search import best_spans
from hybrid_search.search.types import Scores
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.words import words

FILE = "written/topics.jsonl"
MORE_TOPICS = results.ROOT.parent / "export" / "data" / "written" / "more_topics.jsonl"
"""Further topics to train on, which lie in the checkout."""

DEV_DOMAINS = ("hotels", "vet", "water")
STYLES = ("name", "described", "casual", "formal", "said", "oblique")
MARKED_STYLES = ("name", "oblique")
SLACK = 1
"""Words that a right span may lack of the core, and may have beyond the clause."""


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """A turn that says a topic, with the places of its clause and of the core inside that."""

    text: str
    clause: Range
    core: Range


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    """A topic: a phrase for each style, turns that say it, texts of turns that only look so."""

    phrases: Mapping[str, str]
    says: tuple[WrittenTurn, ...]
    near: tuple[str, ...]


def read_topics(data: Path) -> list[WrittenTopic]:
    """Return the topics of the kept-out trades."""
    lines = (data / FILE).read_text(encoding="utf-8").splitlines()
    topics = [json.loads(line) for line in lines]
    return [parse_topic(topic) for topic in topics if topic["domain"] in DEV_DOMAINS]


def parse_topic(row: Mapping[str, Any]) -> WrittenTopic:
    """Return the topic of a row of a file of topics."""
    says = tuple(_parse_turn(turn) for turn in row["says"])
    return WrittenTopic(row["phrases"], says, tuple(turn["text"] for turn in row["near"]))


def _parse_turn(turn: Mapping[str, str]) -> WrittenTurn:
    text, clause, core = turn["text"], turn["span"], turn["core"]
    start = text.index(clause)
    core_start = text.index(core, start)
    return WrittenTurn(text, (start, start + len(clause)), (core_start, core_start + len(core)))


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """Return MAP by style, the share of pairs in the right order, and of right spans."""
    topics = read_topics(data)
    scores = _score_phrases(encoder, topics)
    return {
        "topics": len(topics),
        "systems": {name: _summarise(topics, tables) for name, tables in scores.items()},
        "right spans": _mark_topics(encoder, topics),
    }


def _score_phrases(
    encoder: Encoder, topics: Sequence[WrittenTopic]
) -> dict[str, dict[str, Scores]]:
    """Return for each system and style the scores of all turns, ``[turns, topics]``."""
    texts = [text for topic in topics for text in list_texts(topic)]
    scores: dict[str, dict[str, Scores]] = {"bm25": {}, "best span": {}, "one vector a turn": {}}
    prior = span_prior(encoder)
    if prior:
        scores["best span by cosine"] = {}
    for style in STYLES:
        phrases = [topic.phrases[style] for topic in topics]
        tables = score_texts(encoder, texts, means(encoder, phrases))
        scores["bm25"][style] = np.array(list(lucene.score(texts, phrases))).T
        scores["best span"][style] = tables.span
        scores["one vector a turn"][style] = tables.mean
        if prior:
            scores["best span by cosine"][style] = tables.cosine
    return scores


def list_texts(topic: WrittenTopic) -> list[str]:
    """Return the turns of a topic: those that say it, then those that only look so."""
    return [*(turn.text for turn in topic.says), *topic.near]


@dataclass(frozen=True, slots=True)
class TopicRows:
    """The rows of a topic's turns among all texts: those that say it, and those that look so."""

    says: range
    near: range


def list_rows(topics: Sequence[WrittenTopic]) -> list[TopicRows]:
    """Return the rows of each topic's turns among the turns of all topics, in order."""
    rows, first = [], 0
    for topic in topics:
        middle = first + len(topic.says)
        last = middle + len(topic.near)
        rows.append(TopicRows(range(first, middle), range(middle, last)))
        first = last
    return rows


def _summarise(
    topics: Sequence[WrittenTopic], tables: Mapping[str, Scores]
) -> dict[str, Mapping[str, object]]:
    """Return MAP by style and the share of pairs, with intervals over topics."""
    rows = list_rows(topics)
    figures: dict[str, Mapping[str, object]] = {}
    for style, table in tables.items():
        ranked = [np.argsort(-column, kind="stable").tolist() for column in table.T]
        grades = [dict.fromkeys(topic_rows.says, 1) for topic_rows in rows]
        figures[f"map: {style}"] = bootstrap.summary(evaluate(ranked, grades, [MAP])[MAP])
    pairs = [
        fmean(_share_in_order(table[:, number], topic_rows) for table in tables.values())
        for number, topic_rows in enumerate(rows)
    ]
    figures["pairs"] = bootstrap.summary(pairs)
    return figures


def _share_in_order(scores: Scores, rows: TopicRows) -> float:
    """Return the share of pairs in which the turn that says it is before the one that looks so."""
    says, near = scores[list(rows.says)], scores[list(rows.near)]
    return float((says[:, None] > near[None, :]).mean())


def _mark_topics(encoder: Encoder, topics: Sequence[WrittenTopic]) -> dict[str, Any]:
    """Return the share of right spans by the score and by the cosine alone, by style."""
    prior = span_prior(encoder)
    priors: dict[str, SpanPrior | None] = {"best span by cosine": None}
    if prior:
        priors["best span"] = prior
    return {
        name: {
            style: bootstrap.summary(_share_right(encoder, topics, style, way))
            for style in MARKED_STYLES
        }
        for name, way in priors.items()
    }


def _share_right(
    encoder: Encoder, topics: Sequence[WrittenTopic], style: str, prior: SpanPrior | None
) -> list[float]:
    """Return for each topic the share of its turns in which the right words are marked."""
    shares = []
    for topic in topics:
        phrase = topic.phrases[style]
        marks = (best_spans(encoder, phrase, turn.text, prior=prior) for turn in topic.says)
        shares.append(fmean(map(_is_right, topic.says, marks)))
    return shares


def _is_right(turn: WrittenTurn, spans: Sequence[Span]) -> bool:
    if not spans:
        return False
    mark = _find_words(turn.text, (spans[0].start, spans[0].end))
    missing = _find_words(turn.text, turn.core) - mark
    beyond = mark - _find_words(turn.text, turn.clause)
    return len(missing) <= SLACK and len(beyond) <= SLACK


def _find_words(text: str, place: Range) -> set[int]:
    """Return the numbers of the words of a text that overlap a place."""
    bounds = words(text)
    overlaps = (bounds[:, 1] > place[0]) & (bounds[:, 0] < place[1])
    return set(np.flatnonzero(overlaps).tolist())
