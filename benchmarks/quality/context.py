"""Measure what the encoder should see around a span: ``python -m benchmarks.quality.context``.

nDCG@10 of spans alone, all spans of all passages scored, under three policies. ``turn`` encodes
each turn by itself, which is the product's choice (`encoder.model_folder.CONTEXT`); ``sentence``
cuts turns into sentences; ``passage`` encodes all turns of a passage together. Spans never cross a
turn under any of them; they do cross sentences.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.quality.collection import sample_evenly
from benchmarks.quality.measures import grouped_mean, ndcg
from benchmarks.quality.recall import best_span_cosines
from benchmarks.quality.sentences import sentences
from benchmarks.quality.tasks import TASKS, Query, Task, lines
from hybrid_search import encoder
from hybrid_search.ingest import document_parser
from hybrid_search.search import phrase_vector
from hybrid_search.text import word_codes
from hybrid_search.text.codebook import plain
from hybrid_search.text.passages import split
from hybrid_search.text.types import Document, Encoding, Floats, Part, Passage

CALLS, QUERIES = 1500, 400
"""Documents of calls_sgd, and queries of a task, that are used; evenly spread."""

Range = tuple[int, int]
Policy = Callable[[Document, Passage], list[Range]]


def _turns(_: Document, passage: Passage) -> list[Range]:
    return [(part.window_start, part.end) for part in passage.parts]


def _sentences(document: Document, passage: Passage) -> list[Range]:
    sentence_places = (
        (start, sentences(document.text[start:end])) for start, end in _turns(document, passage)
    )
    return [
        (start + first, start + last) for start, places in sentence_places for first, last in places
    ]


def _passage(_: Document, passage: Passage) -> list[Range]:
    return [(passage.parts[0].window_start, passage.end)] if passage.parts else []


POLICIES: dict[str, Policy] = {"turn": _turns, "sentence": _sentences, "passage": _passage}


def measure(task: Task, data: Path, policy: Policy) -> float:
    """Return nDCG@10 of the spans of `task`, encoded under `policy`."""
    queries = sample_evenly(list(task.queries(data, "dev")), QUERIES)
    within = {query.within for query in queries} - {None}
    vectors = np.array(
        [phrase_vector.query_vector(encoder.load(), query.text) for query in queries]
    )
    places: list[tuple[str, tuple[int, ...]]] = []
    best: list[Floats] = []
    for document in _documents(task, data):
        if not within or document.id in within:
            for passage, scores in _score_passages(document, policy, vectors):
                places.append((document.id, tuple(part.turn for part in passage.parts)))
                best.append(scores)
    table = np.array(best)
    judged_queries = [
        (query, column, _right(query, places)) for column, query in enumerate(queries)
    ]
    values = [
        (ndcg(_rank_places(query, places, table[:, column]), right), query.group)
        for query, column, right in judged_queries
        if right
    ]
    return grouped_mean(*map(list, zip(*values, strict=True)))


def _documents(task: Task, data: Path) -> Iterator[Document]:
    return (document_parser.parse(line.data)[0] for line in lines(task, data, CALLS))


def _score_passages(
    document: Document, policy: Policy, vectors: Floats
) -> Iterator[tuple[Passage, Floats]]:
    """Yield each passage with the best cosine of its spans with each query."""
    document_passages = [passage for passage in split(document) if passage.parts]
    ranges = [policy(document, passage) for passage in document_passages]
    encoded = iter(
        encoder.load().encode(
            [document.text[start:end] for passage_ranges in ranges for start, end in passage_ranges]
        )
    )
    for passage, passage_ranges in zip(document_passages, ranges, strict=True):
        placed = [
            Encoding(encoding.vectors, encoding.offsets + np.int32(start))
            for (start, _), encoding in zip(passage_ranges, encoded, strict=False)
        ]
        coded = word_codes.pack(
            word_codes.gather(
                passage, [_gather_part(part, placed) for part in passage.parts], vectors.shape[1]
            ),
            plain(vectors.shape[1]),
            8,
        )
        yield passage, best_span_cosines(coded, vectors)


def _gather_part(part: Part, placed: Sequence[Encoding]) -> Encoding:
    """Return the tokens of one part, whatever text they were encoded with."""
    vectors, offsets = (
        np.concatenate([getattr(encoding, name) for encoding in placed])
        for name in ("vectors", "offsets")
    )
    inside = (offsets[:, 0] >= part.window_start) & (offsets[:, 1] <= part.end)
    return Encoding(vectors[inside], offsets[inside] - np.int32(part.window_start))


def _right(query: Query, places: Sequence[tuple[str, tuple[int, ...]]]) -> set[Hashable]:
    return {place for place in places if query.right.get(place[0], frozenset()) & set(place[1])}


def _rank_places(
    query: Query, places: Sequence[tuple[str, tuple[int, ...]]], scores: Floats
) -> list[Hashable]:
    order = [
        number
        for number in np.argsort(-scores, kind="stable")
        if not query.within or places[number][0] == query.within
    ]
    return [places[number] for number in order[:50]]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA)
    options = parser.parse_args()
    table: dict[str, Any] = {
        name: {task.name: round(measure(task, options.data, policy), 4) for task in TASKS.values()}
        for name, policy in POLICIES.items()
    }
    results.write(
        "context",
        {
            "ndcg@10 of spans": table,
            "calls of calls_sgd": CALLS,
            "queries a task, at most": QUERIES,
        },
        results.QUALITY,
    )


if __name__ == "__main__":
    main()
