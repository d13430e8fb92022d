"""BM25 by SQLite's FTS5, on the scale of Lucene.

FTS5's ``bm25()`` sums ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))`` with k1
= 1.2, b = 0.75 and ``idf = max(1e-6, ln((N - n + 0.5) / (n + 0.5)))``, as its documentation says: a
term in half of the passages or more weighs nothing, which in a small index is every term. Lucene's
idf, ``ln(1 + (N - n + 0.5) / (n + 0.5))``, never vanishes, and Lucene dropped the constant factor
k1 + 1. So each term is asked for by itself and its FTS5 weight replaced by Lucene's: scores are
then those that a server would give.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.highlight_markers import CLOSE, OPEN, parse_marks
from hybrid_search.backends.types import Key
from hybrid_search.text.words import query_terms

K1 = 1.2
COMMON = 0.5
"""A term in more than this share of the passages costs the most time and says the least."""
SMALL = 1000
"""In an index of fewer passages every term is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """All passages that match: int64 numbers and float64 BM25 scores, best first (equal ones by
    number).
    """

    passages: NDArray[np.int64]
    scores: NDArray[np.float64]


def search(
    connection: sqlite3.Connection,
    phrase: str,
    filter_clause: str = "",
    values: tuple[object, ...] = (),
) -> Matches:
    """BM25 of every passage that holds a word of `phrase` and fulfils the condition `within`, an
    SQL expression on ``rowid``.
    """
    total = int(connection.execute("SELECT count(*) FROM texts_docsize").fetchone()[0])
    query = f"SELECT rowid, -bm25(texts) * ? FROM texts WHERE texts MATCH ?{filter_clause}"
    weights = _term_weights(connection, phrase, total).items()
    rows = [
        row
        for term, weight in weights
        for row in connection.execute(query, (weight, term, *values))
    ]
    passages, positions = np.unique(
        np.array([row[0] for row in rows], dtype=np.int64), return_inverse=True
    )
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, [row[1] for row in rows])
    order = np.lexsort((passages, -scores))
    return Matches(passages[order], scores[order])


def build_match_expression(connection: sqlite3.Connection, phrase: str) -> str:
    """FTS5's expression for the passages that hold a word of `phrase` that counts; empty if none
    can.
    """
    total = int(connection.execute("SELECT count(*) FROM texts_docsize").fetchone()[0])
    return " OR ".join(_term_weights(connection, phrase, total))


def find_highlights(
    connection: sqlite3.Connection, phrase: str, passages: Sequence[Key]
) -> dict[Key, list[tuple[int, int]]]:
    """Start and end of the words of each of `passages` that made its BM25 score."""
    match = build_match_expression(connection, phrase)
    query = "SELECT highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ? AND rowid = ?"
    rows = (
        (passage, connection.execute(query, (OPEN, CLOSE, match, passage)).fetchone())
        for passage in passages
        if match
    )
    return {passage: parse_marks(row[0]) for passage, row in rows if row}


def _term_weights(connection: sqlite3.Connection, phrase: str, total: int) -> dict[str, float]:
    """The factor from FTS5's score of each term to Lucene's; terms that no passage has, and common
    ones beside rarer ones, left out.
    """
    frequencies = {term: _frequency(connection, term) for term in map(_quote, query_terms(phrase))}
    frequencies = {term: count for term, count in frequencies.items() if count}
    rare = {
        term: count
        for term, count in frequencies.items()
        if count <= COMMON * total or total < SMALL
    }
    return {
        term: lucene_idf(total, count) / (fts5_idf(total, count) * (K1 + 1))
        for term, count in (rare or frequencies).items()
    }


def _quote(term: str) -> str:
    """A term as an FTS5 string, which can never be query syntax."""
    return '"' + term.replace('"', '""') + '"'


def _frequency(connection: sqlite3.Connection, term: str) -> int:
    return int(
        connection.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (term,)).fetchone()[0]
    )


def fts5_idf(total: int, count: int) -> float:
    """The weight of a term in `count` of `total` passages, as FTS5 has it."""
    return max(1e-6, math.log((total - count + 0.5) / (count + 0.5)))


def lucene_idf(total: int, count: int) -> float:
    """The weight of a term in `count` of `total` passages, as Lucene has it."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
