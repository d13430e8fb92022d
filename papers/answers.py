"""SQuAD: does a reader find answers in paragraphs of articles that it was not trained on?

Rajpurkar et al., 2016. Beside PiC's span selection, whose queries are phrases and no questions,
this tells whether a reader trained on SQuAD can read at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.quality.systems import System
from benchmarks.quality.tasks import rows, spread_evenly
from papers.pic import selection
from papers.pic.files import Search

MOST = 1000
"""Questions that are measured, evenly spread over the articles."""


def read_questions(data: Path) -> list[Search]:
    """Return up to `MOST` of the questions marked ``dev``, each in its own paragraph."""
    paragraphs = {row["id"]: row["text"] for row in rows(data / "squad_dev/passages.jsonl.gz")}
    questions = [row for row in rows(data / "squad_dev/questions.jsonl.gz") if row["part"] == "dev"]
    return [_search(row, paragraphs) for row in spread_evenly(questions, MOST)]


def _search(row: dict[str, Any], paragraphs: dict[str, str]) -> Search:
    places = dict.fromkeys(
        (answer["start"], answer["start"] + len(answer["text"])) for answer in row["answers"]
    )
    return Search(row["id"], row["question"], paragraphs[row["passage_id"]], tuple(places))


def measure(system: System, data: Path) -> dict[str, Any]:
    """Return EM and F1 of the spans that a reader selects, from 0 to 1.

    Raises:
        SystemExit: For a system that selects no spans.
    """
    if not isinstance(system, selection.Reader):
        raise SystemExit(
            "only readers select answers: give --system reader-slice, or another reader"
        )
    questions = read_questions(data)
    return selection.figures(questions, selection.pick_spans(system, questions))
