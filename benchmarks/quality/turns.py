"""The prototype's protocol on calls_sgd: find the calls in which a customer has an intent.

Each turn is a document, a query is a description of one of the 17 `dev` intents. Every eighth call
is searched (1,545 of 12,353, 27,888 turns), so that labels are as rare as in the whole: half of
these calls have a `dev` intent, each intent is in 5 to 151 of them. Calls are ranked by their best
turn; a call is right if that turn is labelled. Reported is nDCG@10 by call, the mean over an
intent's descriptions, then over the intents; intervals are bootstrapped over the intents.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from benchmarks import lucene
from benchmarks.quality import bootstrap
from benchmarks.quality.fitting import fit
from benchmarks.quality.measures import DEPTH, ndcg
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.tasks import TASKS, Query, lines
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.ingest import document_parser
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.fusion import fuse_calibrated
from hybrid_search.search.types import Legs, Scores
from hybrid_search.text.words import distinct_words

TASK = TASKS["calls_sgd"]
CALLS = 1500
HYBRID = "hybrid 0.5"
PAIRS = (
    (HYBRID, "bm25 by rank-bm25"),
    (HYBRID, "bm25"),
    (HYBRID, "best span"),
    (HYBRID, "one vector a turn"),
    ("best span", "one vector a turn"),
)
"""Systems whose difference is reported with its interval."""


@dataclass(frozen=True, slots=True)
class Turns:
    """All turns of some calls: their `texts`, the call of each, and its number in that call."""

    texts: tuple[str, ...]
    calls: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ScoredQuery:
    """A query with the scores of every turn, each float64 ``[turns]``; `group` is its intent."""

    query: Query
    turns: Turns
    okapi: Scores
    bm25: Scores
    span: Scores
    cosine: Scores
    turn_mean: Scores

    @property
    def group(self) -> str:
        """The intent."""
        return self.query.group

    def fuse(self, calibration: Calibration, alpha: float) -> Scores:
        """Return the product's default fusion of BM25 and the best span."""
        placeholder = np.zeros(len(self.bm25), dtype=np.int64)
        return fuse_calibrated(
            Legs(
                self.bm25,
                self.span,
                placeholder,
                placeholder,
                len(distinct_words(self.query.text)),
                calibration,
            ),
            alpha,
        )

    def by_cosine(self) -> ScoredQuery:
        """Return the same with spans chosen by cosine alone."""
        return replace(self, span=self.cosine)

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        """Return nDCG@10 by call of the fusion."""
        return call_ndcg(self.turns, self.fuse(calibration, alpha), self.query)

    def systems(self, calibration: Calibration) -> dict[str, float]:
        """Return nDCG@10 by call of each system; for BM25 a turn without a query term is no hit."""
        lexical_scores = {"bm25 by rank-bm25": self.okapi, "bm25": self.bm25}
        vector_scores = {"best span": self.span, "one vector a turn": self.turn_mean}
        return {
            **{
                name: call_ndcg(self.turns, scores, self.query, threshold=0.0)
                for name, scores in lexical_scores.items()
            },
            **{
                name: call_ndcg(self.turns, scores, self.query)
                for name, scores in vector_scores.items()
            },
            HYBRID: self.ndcg(calibration),
        }


def measure(
    encoder: Encoder, data: Path, calibration: Calibration | None = None, calls: int = CALLS
) -> dict[str, Any]:
    """Return each system's nDCG@10, its interval and its value by intent, and paired differences.

    `calibration` is usually that of the model's folder; without it one is fitted here, on the
    `train` intents of the same turns.
    """
    turns = read(data, calls)
    measured, fitted = (queries(turns, data, part) for part in ("dev", "train"))
    scored_queries = score_queries(encoder, turns, [*measured, *fitted])
    dev, train = scored_queries[: len(measured)], scored_queries[len(measured) :]
    used = calibration or fit([train])[0]
    intents = mean_by_intent(dev, used)
    return {
        "calls": len(set(turns.calls)),
        "turns": len(turns.texts),
        "distinct turns": len(set(turns.texts)),
        "intents": len({scored_query.group for scored_query in dev}),
        "calibration": {
            **used.to_dict(),
            "of": "the model folder" if calibration else "the train intents of these turns",
        },
        "systems": {
            name: {**bootstrap.summary(list(values.values())), "intents": _round_values(values)}
            for name, values in intents.items()
        },
        "differences": {
            f"{a} - {b}": bootstrap.difference(list(intents[a].values()), list(intents[b].values()))
            for a, b in PAIRS
        },
    }


def score_part(encoder: Encoder, data: Path, part: str, calls: int = CALLS) -> list[ScoredQuery]:
    """Score the queries of `part` on the turns of about `calls` calls, by every system."""
    turns = read(data, calls)
    return score_queries(encoder, turns, queries(turns, data, part))


def read(data: Path, calls: int) -> Turns:
    """Read the turns of about `calls` calls, evenly spread over all."""
    parsed = (document_parser.parse(line.data)[0] for line in lines(TASK, data, calls))
    turn_rows = [
        (turn.text, document.id, number)
        for document in parsed
        for number, turn in enumerate(document.turns)
    ]
    return Turns(*zip(*turn_rows, strict=True))


def queries(turns: Turns, data: Path, part: str) -> list[Query]:
    """Return the descriptions of the intents of `part`, with the labels of the read calls."""
    present_calls = set(turns.calls)
    cut = (
        replace(
            query,
            right={
                call: turn_numbers
                for call, turn_numbers in query.right.items()
                if call in present_calls
            },
        )
        for query in TASK.queries(data, part)
    )
    return [query for query in cut if query.right]


def score_queries(
    encoder: Encoder, turns: Turns, labelled_queries: Sequence[Query]
) -> list[ScoredQuery]:
    """Return the scores of every query on every turn, by every system.

    Each distinct turn is encoded once, by itself.
    """
    words = [labelled_query.text for labelled_query in labelled_queries]
    distinct = list(dict.fromkeys(turns.texts))
    places = {text: number for number, text in enumerate(distinct)}
    rows = np.array([places[text] for text in turns.texts])
    scores = score_texts(encoder, distinct, means(encoder, words))
    legs = zip(
        okapi(turns.texts, words),
        lucene.score(turns.texts, words),
        scores.span[rows].T,
        scores.cosine[rows].T,
        scores.mean[rows].T,
        strict=True,
    )
    return [
        ScoredQuery(query, turns, *scores)
        for query, scores in zip(labelled_queries, legs, strict=True)
    ]


def okapi(texts: Sequence[str], queries: Sequence[str]) -> list[Scores]:
    """Return the papers' baseline, rank-bm25's Okapi with its own parameters.

    Words are lower-cased and not stemmed.
    """
    index = BM25Okapi([distinct_words(text) for text in texts])
    return [
        np.asarray(index.get_scores(distinct_words(query)), dtype=np.float64) for query in queries
    ]


def call_ndcg(
    turns: Turns, scores: NDArray[np.floating], query: Query, threshold: float = -np.inf
) -> float:
    """Return nDCG@10 of the calls in the order of their best turn.

    A turn that scores no more than `threshold` is no hit; among equal ones the first counts.
    """
    seen: dict[str, Hashable] = {}
    for number in np.argsort(-scores, kind="stable").tolist():
        if scores[number] <= threshold or len(seen) == DEPTH:
            break
        call, turn = turns.calls[number], turns.numbers[number]
        seen.setdefault(call, call if turn in query.right.get(call, ()) else (call, turn))
    return ndcg(list(seen.values()), set(query.right))


def mean_by_intent(
    scored_queries: Sequence[ScoredQuery], calibration: Calibration
) -> dict[str, dict[str, float]]:
    """Return the value of each system for each intent: the mean over its descriptions."""
    values_by_system: dict[str, dict[str, list[float]]] = {}
    for scored_query in scored_queries:
        for name, value in scored_query.systems(calibration).items():
            values_by_system.setdefault(name, {}).setdefault(scored_query.group, []).append(value)
    return {
        name: {intent: fmean(values) for intent, values in row.items()}
        for name, row in values_by_system.items()
    }


def _round_values(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}
