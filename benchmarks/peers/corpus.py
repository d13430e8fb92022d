"""The passages of a set, its queries, and which passages are right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.types import Passage, Texts
from benchmarks.quality.collection import Place
from benchmarks.quality.marks import MarkedText
from benchmarks.quality.tasks import TASKS, Query, Task, lines, spread_evenly
from hybrid_search.ingest import document_parser
from hybrid_search.text.passages import split
from hybrid_search.text.words import words

DOCUMENTS = {"calls_sgd": 400, "calls_qmsum": 6, "squad_dev": 200}
"""How many documents of a set are searched, evenly spread.

sentence-transformers needs a quarter of an hour for all, on two cores, and four peers use it.
"""

MARKS = "sample"
"""The set of marked spans: the turns of the hard sample in English."""

QUERIES = 200
"""Queries of a set that are asked at most, evenly spread."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A set as it is searched.

    Attributes:
        texts: The documents and their passages.
        places: The place of each passage by its id: pieces of one long turn have the same.
        queries: The queries to which something in the set is right.
        right: The grades of the right places, for each query.
        words: The number of words of all passages.
    """

    texts: Texts
    places: dict[str, Place]
    queries: Sequence[Query]
    right: Sequence[dict[Place, int]]
    words: int


def read_corpus(name: str, data: Path, count: int | None) -> Corpus:
    """Return a set of `benchmarks.quality.tasks`, of `count` of its documents or of all."""
    task = TASKS[name]
    documents = [json.loads(line.data) for line in spread_evenly(list(lines(task, data)), count)]
    passages, places = cut_passages(documents)
    queries, right = _find_right(task, data, places)
    return Corpus(
        Texts(documents, passages),
        places,
        queries,
        right,
        sum(len(words(passage.text)) for passage in passages),
    )


def cut_passages(
    documents: Sequence[dict[str, Any]],
) -> tuple[list[Passage], dict[str, Place]]:
    """Return the passages of documents as the product cuts them, and their places by id."""
    passages, places = [], {}
    for fields in documents:
        document, _ = document_parser.parse(json.dumps(fields).encode())
        for cut in split(document):
            text = document.text[cut.start : cut.end]
            passage = Passage(f"{document.id}#{cut.ordinal}", document.id, text)
            passages.append(passage)
            places[passage.id] = (document.id, tuple(part.turn for part in cut.parts))
    return passages, places


def _find_right(
    task: Task, data: Path, places: dict[str, Place]
) -> tuple[list[Query], list[dict[Place, int]]]:
    """Return the queries to which a place is right, and the grades of these places."""
    by_document: dict[str, list[Place]] = {}
    for place in places.values():
        by_document.setdefault(place[0], []).append(place)
    graded = [(query, _grade(query, by_document)) for query in task.queries(data, "dev")]
    answerable = spread_evenly([pair for pair in graded if pair[1]], QUERIES)
    return [query for query, _ in answerable], [grades for _, grades in answerable]


def _grade(query: Query, places: dict[str, list[Place]]) -> dict[Place, int]:
    """Return the grade of each place that holds a labelled turn."""
    return {
        place: query.grades.get(id_, 1)
        for id_, turns in query.right.items()
        for place in places.get(id_, ())
        if turns & set(place[1])
    }


def gather_marked(marked_texts: Sequence[MarkedText]) -> Texts:
    """Return marked texts as documents of one passage; their ids are their numbers."""
    documents = [{"id": str(number), "text": item.text} for number, item in enumerate(marked_texts)]
    return Texts(documents, cut_passages(documents)[0])
