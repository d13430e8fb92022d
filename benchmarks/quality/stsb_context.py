"""STS-B-Context: how well the best span of a context ranks like people do, against running the encoder on every span by itself.

Each row has a query, a context that holds a target, and the gold similarity of query and target (0 to 5). The score of a row is the cosine of the
query's vector with the best span of 1 to 20 whole words of the context, exact over all of them; what counts is its correlation with gold. The task
is that of the SLICE paper, on an analogue of its data (see the README beside the data). Measured only: nothing of STS-B is trained on.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.correlation import pearson, spearman
from benchmarks.quality.sentences import sentences
from benchmarks.quality.vectors import TEXTS, Metered, Spans, means
from hybrid_search.encoder import Encoder
from hybrid_search.phrase import Piece, best_places
from hybrid_search.types import Floats

FILE = "stsb-context/dev.tsv"
"""Below the data folder."""

CONTEXTS = 128
"""Rows whose contexts are encoded together: 30 MB of token vectors at 384 dimensions."""

PRUNED = 30
"""Spans of a row that are encoded by themselves, the best by the single pass. Of the base model on 256 rows 100 add .004 to Pearson, 300 add .005."""

SIMILAR = 4.0
"""From this gold score on, query and target say about the same, and the best span should be the target."""

OVERLAP = 0.5
"""Intersection over union, in characters, from which a target counts as found."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """``context[start:end] == target``; `score` is gold, 0 to 5."""

    query: str
    context: str
    target: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a set-up says of a row: a cosine, and the place of the span that has it, where the set-up looks for one."""

    cosine: float
    place: Range | None = None


Setup = Callable[[Encoder, Sequence[Row], Floats], list[Answer]]
"""From the rows and their queries' unit vectors, float32 ``[rows, dimension]``."""


def read(path: Path, most: int | None = None) -> list[Row]:
    """The rows of `path`, or `most` of them, evenly spread. Rows go by genre, so never the head; in pairs, since every second target is woven into
    another sentence."""
    with path.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = [Row(r["query"], r["context"], r["target"], int(r["start"]), int(r["end"]), float(r["score"])) for r in table]
    if most is None or most >= len(rows):
        return rows
    pairs, wanted = len(rows) // 2, -(-most // 2)
    spread = [2 * (pair * pairs // wanted) + second for pair in range(wanted) for second in (0, 1)]
    return [rows[number] for number in spread[:most]]


def score(encoder: Encoder, path: Path, rows: int | None = None, sentencewise: bool = False) -> dict[str, Any]:
    """The figures of a single pass over `path` (dev.tsv), or over `rows` rows of it; see `figures`.

    With `sentencewise` each sentence of a context is encoded by itself, and spans lie inside one.
    """
    return run(encoder, read(path, rows), sentence_wise if sentencewise else single_pass)


def run(encoder: Encoder, rows: Sequence[Row], setup: Setup) -> dict[str, Any]:
    """The figures of `setup`, and its cost: tokens (without the special ones) and texts a row that go through the encoder beside the query."""
    metered = Metered(encoder)
    answers = setup(metered, rows, means(encoder, [row.query for row in rows]))
    cost = {"tokens a row": round(metered.tokens / len(rows), 1), "texts a row": round(metered.texts / len(rows), 1)}
    return {**figures(rows, answers), **cost, "scores": packed([answer.cosine for answer in answers])}


def figures(rows: Sequence[Row], answers: Sequence[Answer]) -> dict[str, Any]:
    """Pearson and Spearman with gold over all rows, Pearson of the sentences that stand alone and of the woven ones, and the share found."""
    gold, cosines = np.array([row.score for row in rows]), np.array([answer.cosine for answer in answers])
    found = [_found(row, answer.place) for row, answer in zip(rows, answers, strict=True) if answer.place and row.score >= SIMILAR]
    table = {
        "pearson": pearson(gold, cosines),
        "spearman": spearman(gold, cosines),
        "pearson standalone": pearson(gold[::2], cosines[::2]),
        "pearson woven": pearson(gold[1::2], cosines[1::2]),
        **({"found": float(np.mean(found))} if found else {}),
    }
    return {"rows": len(rows), **{name: round(value, 4) for name, value in table.items()}}


def _found(row: Row, place: Range) -> bool:
    shared = min(row.end, place[1]) - max(row.start, place[0])
    return max(shared, 0) >= OVERLAP * (max(row.end, place[1]) - min(row.start, place[0]))


def packed(scores: Sequence[float]) -> str:
    """Scores row by row as one line of JSON; `benchmarks.quality.compare` reads them."""
    return " ".join(f"{each:.4f}" for each in scores)


def single_pass(encoder: Encoder, rows: Sequence[Row], queries: Floats) -> list[Answer]:
    """The whole context in one pass."""
    return [_best(pieces) for pieces in _pieces(encoder, rows, queries, _whole)]


def sentence_wise(encoder: Encoder, rows: Sequence[Row], queries: Floats) -> list[Answer]:
    """Each sentence of the context by itself; spans lie inside a sentence."""
    return [_best(pieces) for pieces in _pieces(encoder, rows, queries, sentences)]


def target_alone(encoder: Encoder, rows: Sequence[Row], queries: Floats) -> list[Answer]:
    """The gold target by itself: what finding the right span and reading it without its neighbours would give."""
    return _cosines(queries, means(encoder, [row.target for row in rows]))


def full_context(encoder: Encoder, rows: Sequence[Row], queries: Floats) -> list[Answer]:
    """One mean vector of the whole context."""
    return _cosines(queries, means(encoder, [row.context for row in rows]))


def per_ngram(most: int | None) -> Setup:
    """The encoder run once on each of the `most` best spans by the single pass, or on every span: what the paper's single pass is compared with."""
    return partial(_per_ngram, most=most)


def _per_ngram(encoder: Encoder, rows: Sequence[Row], queries: Floats, most: int | None) -> list[Answer]:
    answers: list[Answer] = []
    together = max(1, TEXTS // (most or TEXTS))
    picked = (_head(pieces[0], most) for pieces in _pieces(encoder, rows, queries, _whole))
    for start in range(0, len(rows), together):
        places = list(islice(picked, together))
        vectors = means(encoder, [row.context[a:b] for row, some in zip(rows[start:], places, strict=False) for a, b in some])
        split = np.split(vectors, np.cumsum([len(some) for some in places])[:-1])
        for query, some, held in zip(queries[start:], places, split, strict=False):
            cosines = held @ query
            best = int(np.argmax(cosines))
            answers.append(Answer(float(cosines[best]), some[best]))
    return answers


def _whole(text: str) -> list[Range]:
    return [(0, len(text))]


def _head(piece: Piece, most: int | None) -> list[Range]:
    order = np.argsort(-piece.cosines, kind="stable")[:most]
    return list(zip(piece.starts[order].tolist(), piece.ends[order].tolist(), strict=True))


def _pieces(encoder: Encoder, rows: Sequence[Row], queries: Floats, cut: Callable[[str], list[Range]]) -> Iterator[list[Piece]]:
    """All spans of each row, a piece for each of the texts that `cut` makes of its context."""
    for start in range(0, len(rows), CONTEXTS):
        some = rows[start : start + CONTEXTS]
        ranges = [cut(row.context) for row in some]
        encoded = iter(encoder.encode([row.context[a:b] for row, found in zip(some, ranges, strict=True) for a, b in found]))
        for row, query, found in zip(some, queries[start:], ranges, strict=False):
            yield [Spans.of(row.context[a:b], next(encoded)).piece(query, a) for a, b in found]


def _best(pieces: Sequence[Piece]) -> Answer:
    _, start, end, cosine = best_places(pieces, 1)[0]
    return Answer(cosine, (start, end))


def _cosines(queries: Floats, vectors: Floats) -> list[Answer]:
    return [Answer(float(each)) for each in np.einsum("ij,ij->i", queries, vectors)]


def every_ngram(encoder: Encoder, rows: Sequence[Row]) -> dict[str, float]:
    """What running the encoder on every span of 1 to 20 words would cost a row: texts, and tokens without the special ones."""
    texts = tokens = 0
    for start in range(0, len(rows), CONTEXTS):
        contexts = [row.context for row in rows[start : start + CONTEXTS]]
        for context, encoding in zip(contexts, encoder.encode(contexts), strict=True):
            found = Spans.of(context, encoding)
            texts, tokens = texts + len(found), tokens + found.length
    return {"tokens a row": round(tokens / len(rows), 1), "texts a row": round(texts / len(rows), 1)}


def measure(encoder: Encoder, data: Path, rows: int | None = None, pruned: int | None = PRUNED) -> dict[str, Any]:
    """Every set-up on the same rows, and what the whole enumeration would cost."""
    held = read(data / FILE, rows)
    name = f"per n-gram, {f'best {pruned}' if pruned else 'all'}"
    setups: dict[str, Setup] = {
        "single pass": single_pass,
        "sentence-wise": sentence_wise,
        "target alone": target_alone,
        "full context": full_context,
        name: per_ngram(pruned),
    }
    made = {each: run(encoder, held, setup) for each, setup in setups.items()}
    return {"setups": made, "cost of every n-gram": every_ngram(encoder, held), "gold": packed([row.score for row in held])}
