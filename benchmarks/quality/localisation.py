"""Localisation: how well the span that is marked in a right text is the one a person would mark.

In go phrases with texts that answer them; the best span of each text is compared with a labelled
one. Nothing is searched for here: the text is always a right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality import bootstrap, hard_sample, stsb_context
from benchmarks.quality.marking import BASELINES, BEST_SPAN, list_ways
from benchmarks.quality.marks import (
    Agreement,
    MarkedText,
    compare,
    mean_gold_words,
    write_as_recognised,
)
from benchmarks.quality.stsb_context import SIMILAR
from benchmarks.quality.tasks import rows, spread_evenly
from hybrid_search.encoder import Encoder
from hybrid_search.text.span_prior import SpanPrior

QUESTIONS = 500
"""Questions of SQuAD that are measured, evenly spread over 2,838."""

SAMPLE, RECOGNISED, STSB, SQUAD = "sample", "sample, as recognised", "stsb-context", "squad"
MEASURES = ("f1", "iou", "found")


@dataclass(frozen=True, slots=True)
class MarkedSet:
    """Where marked texts come from, and how to read them below the data folder."""

    about: str
    read: Callable[[Path], list[MarkedText]]


def _read_sample(_: Path) -> list[MarkedText]:
    return hard_sample.read_marked_turns()


def _read_recognised(_: Path) -> list[MarkedText]:
    return [write_as_recognised(item) for item in hard_sample.read_marked_turns()]


def _read_stsb_context(data: Path) -> list[MarkedText]:
    return [
        MarkedText(row.query, row.context, ((row.start, row.end),))
        for row in stsb_context.read(data / stsb_context.FILE)
        if row.score >= SIMILAR
    ]


def _read_squad(data: Path) -> list[MarkedText]:
    texts = {row["id"]: row["text"] for row in rows(data / "squad_dev/passages.jsonl.gz")}
    questions = [row for row in rows(data / "squad_dev/questions.jsonl.gz") if row["part"] == "dev"]
    return [
        MarkedText(row["question"], texts[row["passage_id"]], _list_answers(row))
        for row in spread_evenly(questions, QUESTIONS)
    ]


def _list_answers(question: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (answer["start"], answer["start"] + len(answer["text"])) for answer in question["answers"]
    )


SETS = {
    SAMPLE: MarkedSet("the spans in English of the hard sample, in their turns", _read_sample),
    RECOGNISED: MarkedSet("the same in lower case without punctuation", _read_recognised),
    STSB: MarkedSet(
        f"targets of STS-B-Context, dev, of gold similarity {SIMILAR:g} or more", _read_stsb_context
    ),
    SQUAD: MarkedSet(
        f"answers of SQuAD, dev: {QUESTIONS} questions, evenly spread; the nearest answer counts",
        _read_squad,
    ),
}


def measure(encoder: Encoder, prior: SpanPrior | None, data: Path) -> dict[str, Any]:
    """Return the figures of every way of marking on every set, with paired differences.

    Intervals are of resampled texts.
    """
    return {"sets": {name: _measure_set(encoder, prior, data, name) for name in SETS}}


def _measure_set(
    encoder: Encoder, prior: SpanPrior | None, data: Path, name: str
) -> dict[str, Any]:
    marked_set = SETS[name]
    marked_texts = marked_set.read(data)
    agreements = {
        way: list(map(compare, marked_texts, mark(marked_texts)))
        for way, mark in list_ways(encoder, prior).items()
    }
    return {
        "about": marked_set.about,
        "texts": len(marked_texts),
        "words of a gold span": round(mean_gold_words(marked_texts), 2),
        "ways": {way: _summarise(values) for way, values in agreements.items()},
        "f1, differences": {
            f"{BEST_SPAN} - {way}": bootstrap.difference(
                _values(agreements[BEST_SPAN], "f1"), _values(agreements[way], "f1")
            )
            for way in BASELINES
        },
    }


def _summarise(agreements: Sequence[Agreement]) -> dict[str, Any]:
    figures = {name: bootstrap.summary(_values(agreements, name)) for name in MEASURES}
    length = sum(agreement.length for agreement in agreements) / len(agreements)
    return {**figures, "words of a mark": round(length, 2)}


def _values(agreements: Sequence[Agreement], name: str) -> list[float]:
    return [float(getattr(agreement, name)) for agreement in agreements]
