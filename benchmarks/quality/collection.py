"""An ingested task: its index, the turns of each passage, and the candidates of its queries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.quality.encoders import Model
from benchmarks.quality.tasks import Query, Task, lines
from hybrid_search import connect
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.encoder.base import span_prior
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search import phrase_vector
from hybrid_search.search.candidates import retrieve
from hybrid_search.search.query import WINDOW
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text import word_codes
from hybrid_search.text.filters import ID, Condition
from hybrid_search.text.passages import split
from hybrid_search.text.types import Floats

SHIPPED = Model()

Place = tuple[str, tuple[int, ...]]
"""A passage as the turns in it, so that all pieces of one long turn are the same place."""


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """The index of a task by one model, with the place of each passage.

    The index lies in the folder `store`; places are keyed by document id and ordinal.
    """

    task: Task
    model: Model
    store: Path
    client: Client
    places: dict[str, list[Place]]

    def relevant_places(self, query: Query) -> set[Hashable]:
        """Return the places that hold a labelled turn."""
        return {
            place
            for id_, turns in query.right.items()
            for place in self.places.get(id_, ())
            if turns & set(place[1])
        }

    def candidates(self, query: Query) -> tuple[Request, list[ScoredPassage]]:
        """Return what the product's two legs find, with raw scores, before fusion."""
        vector = phrase_vector.query_vector(self.model.encoder, query.text)
        prior = span_prior(self.model.encoder)
        request = Request(query.text, vector, WINDOW, self.conditions(query), prior=prior)
        return request, self.retrieve(request)

    def retrieve(self, request: Request) -> list[ScoredPassage]:
        """Return what both legs find for a request, with raw scores, before fusion."""
        return retrieve(self.client.backend, self.task.name, request).passages

    def conditions(self, query: Query) -> tuple[Condition, ...]:
        """Return the filter to the only document that a query searches, if it has one."""
        return (Condition(ID, (query.within,)),) if query.within else ()

    def place(self, scored: ScoredPassage) -> Place:
        """Return the place of a passage."""
        return self.places[scored.stored.document_id][scored.stored.ordinal]

    def mean_vectors(self) -> tuple[list[tuple[str, Place]], Floats]:
        """Return the baseline's vectors, one a passage, with document and place.

        A vector is the mean of all tokens of the passage; together they are float32 ``[passages,
        dimension]``.
        """
        passage_places: list[tuple[str, Place]] = []
        vectors = []
        for scanned in self.client.backend.scan_codes(self.task.name):
            id_, summed = scanned.document_id, word_codes.vectors(scanned.tokens).sum(axis=0)
            passage_places.append((id_, self.places[id_][scanned.ordinal]))
            vectors.append(summed / max(float(np.linalg.norm(summed)), 1e-12))
        return passage_places, np.array(vectors, dtype=np.float32)


def ingest_task(
    task: Task, data: Path, model: Model = SHIPPED, calls: int | None = None
) -> Collection:
    """Return the index of `task`, ingesting what the benchmark store does not have yet.

    Ingest takes the product's own command path.

    With `calls`, of calls_sgd only about that many, evenly spread.
    """
    store = model.store(calls)
    client = connect(
        f"embedded:{store}",
        model=model.folder,
        precision=model.precision,
        dimension=model.dimension,
    )
    client.ingest_lines(
        lines(task, data, calls), index=task.name, rejects=store / f"{task.name}.rejected.jsonl"
    )
    return Collection(task, model, store, client, dict(_places(lines(task, data, calls))))


def _places(source: Iterable[SourceLine]) -> Iterator[tuple[str, list[Place]]]:
    for line in source:
        document, _ = document_parser.parse(line.data)
        yield (
            document.id,
            [
                (document.id, tuple(part.turn for part in passage.parts))
                for passage in split(document)
            ],
        )


def sample_evenly(queries: Sequence[Query], most: int) -> list[Query]:
    """Return at most `most` queries, evenly spread."""
    step = max(1, -(-len(queries) // most))
    return list(queries[::step])
