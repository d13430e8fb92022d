"""STS-B-Context: how well the best span of a context ranks like people do.

Compared with encoding every span by itself. Each row has a query, a context that contains a target,
and the gold similarity of query and target (0 to 5). The score of a row is the cosine of the
query's vector with the best span of 1 to 20 whole words of the context, exact over all of them;
what counts is its correlation with gold. The task is that of the SLICE paper (arXiv:2405.07263,
table 1), on an analogue of its data (see the README beside the data); a file of the authors can be
read too. Measured only: nothing of STS-B is trained on.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import setups
from benchmarks.quality.correlation import pearson, spearman
from benchmarks.quality.setups import Answer, Setup
from benchmarks.quality.systems import Range, Scorer, SpanEncoder, System, TextEncoder, TokenMeans
from benchmarks.quality.vectors import MeteredEncoder
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior

FILE = "stsb-context/dev.tsv"
"""Below the data folder."""

PRUNED = 30
"""Spans of a row that are encoded by themselves, the best by the single pass.

Of the base model on 256 rows 100 add .004 to Pearson, 300 add .005.
"""

SIMILAR = 4.0
"""From this gold score on, query and target mean about the same, and the best span should be the
target.
"""

OVERLAP = 0.5
"""Intersection over union, in characters, from which a target counts as found."""


COLUMNS = ("query", "context", "target", "score")
SAME = {name: name for name in COLUMNS}

Columns = Mapping[str, str]
"""The file's name for each of `COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Row:
    """``context[start:end] == target``; `score` is gold, 0 to 5."""

    query: str
    context: str
    target: str
    start: int
    end: int
    score: float


def read(path: Path, most: int | None = None, columns: Columns = SAME) -> list[Row]:
    """Return the rows of `path`, or `most` of them, evenly spread.

    Spread, because rows are sorted by genre; in pairs, because every second target is woven into
    another sentence. Without columns `start` and `end` the target is where it first occurs.

    `columns` has the file's name for each of `COLUMNS`, or a number from 0 if it has no
    heading. Raises SystemExit if a column is missing, or a context does not contain its target.
    """
    rows = [
        _row(fields, columns, f"{path}, row {number}")
        for number, fields in enumerate(_table(path, columns), 1)
    ]
    if most is None or most >= len(rows):
        return rows
    pairs, pair_count = len(rows) // 2, -(-most // 2)
    spread = [
        2 * (pair * pairs // pair_count) + second for pair in range(pair_count) for second in (0, 1)
    ]
    return [rows[number] for number in spread[:most]]


def _table(path: Path, columns: Columns) -> Iterator[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        if all(name.isdecimal() for name in columns.values()):
            yield from (
                {str(number): cell for number, cell in enumerate(line)}
                for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            )
        else:
            yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _row(fields: Mapping[str, str], columns: Columns, where: str) -> Row:
    lacking = [name for name in columns.values() if name not in fields]
    if lacking:
        raise SystemExit(
            f"{where}: no column {', '.join(lacking)}: it has {', '.join(fields)};"
            " name them by --columns"
        )
    query, context, target, score = (fields[columns[name]] for name in COLUMNS)
    start = int(fields["start"]) if "start" in fields else context.lower().find(target.lower())
    if start < 0:
        raise SystemExit(f"{where}: the context does not hold the target {target[:60]!r}")
    return Row(
        query,
        context,
        target,
        start,
        int(fields["end"]) if "end" in fields else start + len(target),
        float(score),
    )


def score(
    encoder: Encoder, path: Path, rows: int | None = None, sentencewise: bool = False
) -> dict[str, Any]:
    """Return the figures of a single pass over `path` (dev.tsv), or over `rows` rows of it.

    See `figures`. With `sentencewise` each sentence of a context is encoded by itself, and spans
    lie inside one.
    """
    return run(
        TokenMeans(encoder),
        read(path, rows),
        setups.sentence_wise if sentencewise else setups.single_pass,
    )


def run(system: System, rows: Sequence[Row], setup: Setup) -> dict[str, Any]:
    """Return the figures of `setup`, and for token means its cost.

    The cost is the tokens (without special ones) and texts a row that are encoded beside the query.
    """
    metered = MeteredEncoder(system.encoder) if isinstance(system, TokenMeans) else None
    answers = setup(
        system if metered is None else TokenMeans(metered), [row.query for row in rows], rows
    )
    cost = {} if metered is None else _cost(metered, rows)
    return {
        **figures(rows, answers),
        **cost,
        "scores": pack_scores([answer.score for answer in answers]),
    }


def _cost(metered: MeteredEncoder, rows: Sequence[Row]) -> dict[str, float]:
    """Return the cost a row, without the queries, which every set-up encodes."""
    queries = MeteredEncoder(metered.encoder)
    queries.encode([row.query for row in rows])
    tokens, texts = metered.tokens - queries.tokens, metered.texts - queries.texts
    return {
        "tokens a row": round(tokens / len(rows), 1),
        "texts a row": round(texts / len(rows), 1),
    }


def figures(rows: Sequence[Row], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return Pearson and Spearman with gold over all rows, and the share of targets found.

    Also Pearson of the sentences that stand alone, and of the woven ones.
    """
    gold, scores = (
        np.array([row.score for row in rows]),
        np.array([answer.score for answer in answers]),
    )
    matches = [
        _is_target_found(row, answer.place)
        for row, answer in zip(rows, answers, strict=True)
        if answer.place and row.score >= SIMILAR
    ]
    table = {
        "pearson": pearson(gold, scores),
        "spearman": spearman(gold, scores),
        "pearson standalone": pearson(gold[::2], scores[::2]),
        "pearson woven": pearson(gold[1::2], scores[1::2]),
        **({"found": float(np.mean(matches))} if matches else {}),
    }
    return {"rows": len(rows), **{name: round(value, 4) for name, value in table.items()}}


def _is_target_found(row: Row, place: Range) -> bool:
    shared = min(row.end, place[1]) - max(row.start, place[0])
    return max(shared, 0) >= OVERLAP * (max(row.end, place[1]) - min(row.start, place[0]))


def pack_scores(scores: Sequence[float]) -> str:
    """Return scores row by row as one line of JSON."""
    return " ".join(f"{value:.4f}" for value in scores)


def unpack_scores(scores: str) -> list[float]:
    """Return the scores row by row, from `pack_scores`."""
    return [float(value) for value in scores.split()]


def measure(
    system: System, rows: Sequence[Row], pruned: int | None = PRUNED, sweep: bool = False
) -> dict[str, Any]:
    """Return the figures of every set-up that `system` supports.

    `pruned` spans a row are encoded by themselves, all if None. With `sweep` the single pass is
    also measured with other longest spans than 20 words. For token means the cost of the full
    enumeration is added.
    """
    figures_by_setup = {
        name: run(system, rows, setup) for name, setup in _setups(system, pruned).items()
    }
    swept = {"longest": _sweep(system, rows)} if sweep and isinstance(system, SpanEncoder) else {}
    cost = (
        {"cost of every n-gram": setups.cost_of_every_ngram(system.encoder, rows)}
        if isinstance(system, TokenMeans)
        else {}
    )
    return {
        "setups": figures_by_setup,
        **swept,
        **cost,
        "gold": pack_scores([row.score for row in rows]),
    }


def _setups(system: System, pruned: int | None) -> dict[str, Setup]:
    applicable: dict[str, Setup] = {}
    if isinstance(system, Scorer):
        applicable |= {"text scores": setups.text_scores}
    if isinstance(system, SpanEncoder):
        applicable |= {"single pass": setups.single_pass, "sentence-wise": setups.sentence_wise}
    if isinstance(system, TokenMeans) and span_prior(system.encoder):
        applicable |= {"single pass, by score": setups.by_score}
    if isinstance(system, TextEncoder):
        applicable |= {"target alone": setups.target_alone, "full context": setups.full_context}
    if isinstance(system, SpanEncoder) or (isinstance(system, TextEncoder) and pruned is None):
        applicable |= {
            f"per n-gram, {f'best {pruned}' if pruned else 'all'}": setups.per_ngram(pruned)
        }
    return applicable


def _sweep(system: SpanEncoder, rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return Pearson and Spearman of the single pass by the longest span, in words."""
    by_longest = setups.sweep(system, [row.query for row in rows], rows)
    return {
        str(longest): {name: figures(rows, answers)[name] for name in ("pearson", "spearman")}
        for longest, answers in by_longest.items()
    }
