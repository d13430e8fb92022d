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

from benchmarks.quality import bootstrap
from benchmarks.quality.measures import MAP, evaluate
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.systems import Range
from benchmarks.quality.turns import score_bm25
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.search.span_search import best_spans
from hybrid_search.search.types import Scores
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.words import words

FILE = "written/topics.jsonl"
DEV_DOMAINS = ("hotels", "vet", "water")
STYLES = ("name", "described", "casual", "formal", "said", "oblique")
MARKED_STYLE = "name"
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
    return [_parse_topic(topic) for topic in topics if topic["domain"] in DEV_DOMAINS]


def _parse_topic(row: Mapping[str, Any]) -> WrittenTopic:
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
    texts = [text for topic in topics for text in _list_texts(topic)]
    scores: dict[str, dict[str, Scores]] = {"bm25": {}, "best span": {}, "one vector a turn": {}}
    prior = span_prior(encoder)
    if prior:
        scores["best span by cosine"] = {}
    for style in STYLES:
        phrases = [topic.phrases[style] for topic in topics]
        tables = score_texts(encoder, texts, means(encoder, phrases))
        scores["bm25"][style] = np.array(list(score_bm25(texts, phrases))).T
        scores["best span"][style] = tables.span
        scores["one vector a turn"][style] = tables.mean
        if prior:
            scores["best span by cosine"][style] = tables.cosine
    return scores


def _list_texts(topic: WrittenTopic) -> list[str]:
    return [*(turn.text for turn in topic.says), *topic.near]


def _summarise(
    topics: Sequence[WrittenTopic], tables: Mapping[str, Scores]
) -> dict[str, Mapping[str, object]]:
    """Return MAP by style and the share of pairs, with intervals over topics."""
    rows, first = [], 0
    for topic in topics:
        count = len(topic.says) + len(topic.near)
        rows.append((range(first, first + len(topic.says)), range(first, first + count)))
        first += count
    figures: dict[str, Mapping[str, object]] = {}
    for style, table in tables.items():
        ranked = [np.argsort(-column, kind="stable").tolist() for column in table.T]
        grades = [dict.fromkeys(says, 1) for says, _ in rows]
        figures[f"map: {style}"] = bootstrap.summary(evaluate(ranked, grades, [MAP])[MAP])
    pairs = [
        fmean(
            _share_in_order(
                table[list(says), number], table[own.start + len(says) : own.stop, number]
            )
            for table in tables.values()
        )
        for number, (says, own) in enumerate(rows)
    ]
    figures["pairs"] = bootstrap.summary(pairs)
    return figures


def _share_in_order(says: Scores, near: Scores) -> float:
    """Return the share of pairs in which the turn that says it is before the one that looks so."""
    return float((says[:, None] > near[None, :]).mean())


def _mark_topics(encoder: Encoder, topics: Sequence[WrittenTopic]) -> dict[str, Any]:
    """Return the share of right spans by the score and by the cosine alone, by style."""
    prior = span_prior(encoder)
    priors: dict[str, SpanPrior | None] = {"best span by cosine": None}
    if prior:
        priors["best span"] = prior
    return {
        name: {
            style: bootstrap.summary(
                [
                    fmean(
                        _is_right(
                            turn, best_spans(encoder, topic.phrases[style], turn.text, prior=way)
                        )
                        for turn in topic.says
                    )
                    for topic in topics
                ]
            )
            for style in (MARKED_STYLE, "oblique")
        }
        for name, way in priors.items()
    }


def _is_right(turn: WrittenTurn, spans: Sequence[Any]) -> bool:
    if not spans:
        return False
    bounds = words(turn.text)
    mark, clause, core = (
        {
            number
            for number, (start, end) in enumerate(bounds.tolist())
            if end > place[0] and start < place[1]
        }
        for place in ((spans[0].start, spans[0].end), turn.clause, turn.core)
    )
    return len(core - mark) <= SLACK and len(mark - clause) <= SLACK
