"""Retrieval tasks: which documents, which queries, which turns are right. Declarations and readers, no measuring.

A query is right on a passage that holds a labelled turn. Queries are marked `train` (used to fit the calibration) or `dev` (measured).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_search.ingest import sources
from hybrid_search.ingest.sources import Line

Right = dict[str, frozenset[int]]
"""Labelled turns by document id."""


@dataclass(frozen=True, slots=True)
class Query:
    """One wording of a question. `group` is averaged over first (the texts of one intent); `within` is the only document searched, if any."""

    text: str
    group: str
    right: Right
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A collection with labelled queries. `documents` is the file below the data folder that is ingested."""

    name: str
    documents: str
    queries: Callable[[Path, str], Iterator[Query]]
    about: str


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file, gzipped or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def lines(task: Task, data: Path, calls: int | None = None) -> Iterator[Line]:
    """The documents of `task`; of calls_sgd only every so many so that about `calls` are left, if given: the others are small."""
    read = sources.read([str(data / task.documents)])
    if not calls or task.name != "calls_sgd":
        return read
    held = list(read)
    return iter(held[:: max(1, len(held) // calls)])


def _sgd(data: Path, part: str) -> Iterator[Query]:
    turns: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    with gzip.open(data / "calls_sgd/qrels.tsv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            turns[row["query_id"]][row["call_id"]].add(int(row["turn"]))
    for row in rows(data / "calls_sgd/queries.jsonl"):
        if row["part"] == part:
            right = {call: frozenset(found) for call, found in turns[row["id"]].items()}
            yield from (Query(text, row["id"], right) for text in row["texts"])


def _qmsum(data: Path, part: str) -> Iterator[Query]:
    for row in rows(data / "calls_qmsum/queries.jsonl.gz"):
        if row["part"] == part:
            turns = frozenset(turn for first, last in row["turn_spans"] for turn in range(first, last + 1))
            yield Query(row["query"], row["id"], {row["call_id"]: turns}, within=row["call_id"])


def _squad(data: Path, part: str) -> Iterator[Query]:
    for row in rows(data / "squad_dev/questions.jsonl.gz"):
        if row["part"] == part:
            yield Query(row["question"], row["id"], {row["passage_id"]: frozenset([0])})


TASKS = {
    task.name: task
    for task in (
        Task("calls_sgd", "calls_sgd/calls.jsonl.gz", _sgd, "12,353 calls; descriptions of 17 intents, averaged by intent"),
        Task("calls_qmsum", "calls_qmsum/calls.jsonl.gz", _qmsum, "165 meetings; questions, each within its own meeting"),
        Task("squad_dev", "squad_dev/passages.jsonl.gz", _squad, "1,596 paragraphs; questions"),
    )
}
