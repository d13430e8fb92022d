"""Retrieval tasks: documents, queries, and the turns that are relevant to each.

Declarations and readers only. A passage is relevant to a query if it holds a labelled turn. Queries
are marked `train` (used to fit the calibration) or `dev` (measured).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hybrid_search.ingest.sources import files
from hybrid_search.ingest.types import SourceLine

T = TypeVar("T")

Right = dict[str, frozenset[int]]
"""Labelled turns by document id."""

ANSWERS = 4000
"""Unjudged answers of medquad that are searched beside the judged ones by default.

All 16,373 take ten minutes to ingest on two cores.
"""


@dataclass(frozen=True, slots=True)
class Query:
    """One wording of a question.

    `group` is averaged over first (the texts of one intent); `within` is the only document
    searched, if any. `grades` are the grades of a document's labelled turns, from 1; documents
    without one have 1.
    """

    text: str
    group: str
    right: Right
    within: str | None = None
    grades: Mapping[str, int] = field(default_factory=dict)


def _read_all(path: Path, _: int | None) -> Iterator[SourceLine]:
    return files.read([str(path)])


@dataclass(frozen=True, slots=True)
class Task:
    """A collection with labelled queries.

    `documents` is the file below the data folder whose lines `read` yields, on request only about a
    given number of them.
    """

    name: str
    documents: str
    queries: Callable[[Path, str], Iterator[Query]]
    about: str
    read: Callable[[Path, int | None], Iterator[SourceLine]] = _read_all


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file, gzipped or not."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        for line in file:
            yield json.loads(line)


def lines(task: Task, data: Path, calls: int | None = None) -> Iterator[SourceLine]:
    """Return an iterator over the documents of `task`.

    With `calls`, about that many of calls_sgd and medquad, evenly spread; the other tasks are
    small.
    """
    return task.read(data / task.documents, calls)


def spread_evenly(items: Sequence[T], most: int | None) -> list[T]:
    """Return `most` of the items, or all if fewer.

    Evenly spread, since files are sorted by article.
    """
    count = min(most or len(items), len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _read_spread(path: Path, calls: int | None) -> Iterator[SourceLine]:
    source_lines = list(files.read([str(path)]))
    return iter(source_lines[:: _step(source_lines, calls or len(source_lines))])


def _step(items: Sequence[object], count: int) -> int:
    return max(1, len(items) // count)


def _read_answers(path: Path, calls: int | None) -> Iterator[SourceLine]:
    """Yield answers without their questions: the judged ones and about `calls` others.

    The others are evenly spread.
    """
    judged = {row["doc_id"] for row in _judgements(path.parent)}
    answer_rows = list(rows(path))
    step = _step(answer_rows, calls or ANSWERS)
    for number, row in enumerate(answer_rows):
        if number % step == 0 or row["id"] in judged:
            yield SourceLine(
                str(path), number + 1, json.dumps({"id": row["id"], "text": row["answer"]}).encode()
            )


def _judgements(folder: Path) -> list[dict[str, str]]:
    with (folder / "liveqa_qrels.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _sgd(data: Path, part: str) -> Iterator[Query]:
    turns: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    with gzip.open(data / "calls_sgd/qrels.tsv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            turns[row["query_id"]][row["call_id"]].add(int(row["turn"]))
    for row in rows(data / "calls_sgd/queries.jsonl"):
        if row["part"] == part:
            right = {
                call: frozenset(labelled_turns) for call, labelled_turns in turns[row["id"]].items()
            }
            yield from (Query(text, row["id"], right) for text in row["texts"])


def _qmsum(data: Path, part: str) -> Iterator[Query]:
    for row in rows(data / "calls_qmsum/queries.jsonl.gz"):
        if row["part"] == part:
            turns = frozenset(
                turn for first, last in row["turn_spans"] for turn in range(first, last + 1)
            )
            yield Query(row["query"], row["id"], {row["call_id"]: turns}, within=row["call_id"])


def _squad(data: Path, part: str) -> Iterator[Query]:
    for row in rows(data / "squad_dev/questions.jsonl.gz"):
        if row["part"] == part:
            yield Query(row["question"], row["id"], {row["passage_id"]: frozenset([0])})


def _liveqa(data: Path, part: str) -> Iterator[Query]:
    """Yield the queries of LiveQA: the short form of each question.

    An answer is relevant as a whole. All are `dev`: nothing is fitted on them.
    """
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for row in _judgements(data / "medquad"):
        if int(row["relevance"]) > 0:
            grades[row["query_id"]][row["doc_id"]] = int(row["relevance"])
    for row in rows(data / "medquad/liveqa_queries.jsonl") if part == "dev" else ():
        graded = grades[row["id"]]
        yield Query(row["text"], row["id"], dict.fromkeys(graded, frozenset([0])), grades=graded)


TASKS = {
    task.name: task
    for task in (
        Task(
            "calls_sgd",
            "calls_sgd/calls.jsonl.gz",
            _sgd,
            "12,353 calls; descriptions of 17 intents, averaged by intent",
            _read_spread,
        ),
        Task(
            "calls_qmsum",
            "calls_qmsum/calls.jsonl.gz",
            _qmsum,
            "165 meetings; questions, each within its own meeting",
        ),
        Task("squad_dev", "squad_dev/passages.jsonl.gz", _squad, "1,596 paragraphs; questions"),
    )
}
"""The tasks that calibrations are fitted on and means are taken over."""

MEDQUAD = Task(
    "medquad",
    "medquad/qa.jsonl.gz",
    _liveqa,
    f"answers of NIH's pages, the judged ones and about {ANSWERS:,} others (or --calls);"
    " consumers' questions of LiveQA-Med 2017, grades 1 to 3",
    _read_answers,
)
"""Ben Abacha and Demner-Fushman, "A question-entailment approach to question answering", 2019.

Unjudged answers count as irrelevant.
"""

ALL = {**TASKS, MEDQUAD.name: MEDQUAD}
"""All tasks, with those that are measured only."""
