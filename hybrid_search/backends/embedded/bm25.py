"""BM25 computed by SQLite's FTS5, on the scale of Lucene.

According to its documentation FTS5's ``bm25()`` is the sum over terms of
``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))`` with k1 = 1.2, b = 0.75 and
``idf = max(1e-6, ln((N - n + 0.5) / (n + 0.5)))``. There a term in half of the passages or more
weighs nothing, and in a small index that is every term. Lucene's idf
``ln(1 + (N - n + 0.5) / (n + 0.5))`` never vanishes, and Lucene dropped the constant factor k1 + 1.
Therefore each term is searched by itself and its FTS5 weight is replaced by Lucene's: the scores
are then those that a server would give, which rounds the lengths of passages.

FTS5 cannot be told of stop words. So the terms are cut in Python (`text.terms`), and indexed in
place of the text.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import sql
from hybrid_search.backends.highlight_markers import CLOSE, OPEN, parse_marks, strip_marks
from hybrid_search.backends.types import DamagedRowError, Key
from hybrid_search.text.terms import find_words, query_terms
from hybrid_search.text.words import distinct_words

K1 = 1.2
COMMON = 0.5
"""A term in a larger share of the passages than this is skipped beside rarer ones.

Such terms cost the most time and distinguish the least.
"""
SMALL = 1000
"""In an index with fewer passages than this every term is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """All passages that match.

    Attributes:
        passages: Passage numbers in ascending order, int64 ``[passages]``.
        scores: BM25 scores, float64 ``[passages]``.
    """

    passages: NDArray[np.int64]
    scores: NDArray[np.float64]

    def best_scores(self, limit: int) -> dict[Key, float]:
        """Return the scores of the best `limit` passages, equal ones in the order of numbers."""
        order = np.argsort(-self.scores, kind="stable")[:limit]
        return dict(zip(self.passages[order].tolist(), self.scores[order].tolist(), strict=True))

    def scores_of(self, passages: Sequence[Key]) -> list[float]:
        """Return the score of each of `passages`; 0 for those that do not match."""
        if not len(self.passages):
            return [0.0] * len(passages)
        numbers = np.array(passages, dtype=np.int64)
        positions = np.searchsorted(self.passages, numbers).clip(max=len(self.passages) - 1)
        matches = self.passages[positions] == numbers
        scores: list[float] = np.where(matches, self.scores[positions], 0.0).tolist()
        return scores


def search(
    connection: sqlite3.Connection,
    phrase: str,
    filter_clause: str = "",
    values: tuple[object, ...] = (),
) -> Matches:
    """Return the BM25 score of every passage that contains a word of `phrase`.

    `filter_clause` is SQL on ``rowid`` that narrows the search, beginning with AND; `values` are
    its parameters.
    """
    total = int(connection.execute("SELECT count(*) FROM texts_docsize").fetchone()[0])
    query = (
        f"SELECT rowid, coalesce(-bm25(texts) * ?, 0) FROM texts WHERE texts MATCH ?{filter_clause}"
    )
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
    return Matches(passages, scores)


def build_match_expression(connection: sqlite3.Connection, phrase: str) -> str:
    """Return the FTS5 expression that matches the passages that `search` finds.

    It is empty if no passage can match.
    """
    total = int(connection.execute("SELECT count(*) FROM texts_docsize").fetchone()[0])
    return " OR ".join(_term_weights(connection, phrase, total))


def find_highlights(
    connection: sqlite3.Connection, phrase: str, passages: Sequence[Key]
) -> dict[Key, list[tuple[int, int]]]:
    """Return start and end of the words that BM25 matched in each of `passages`.

    Raises:
        DamagedRowError: If the text of one cannot be read.
    """
    match = build_match_expression(connection, phrase)
    find_words, column = (
        (find_marked_terms, "terms") if sql.has_terms(connection) else (_parse_marked_text, "text")
    )
    marked = f"CASE typeof({column}) WHEN 'text' THEN highlight(texts, 0, ?, ?) END"
    query = f"SELECT {marked}, text FROM texts WHERE texts MATCH ? AND rowid = ?"
    highlights: dict[Key, list[tuple[int, int]]] = {}
    for passage in passages if match else ():
        row = connection.execute(query, (OPEN, CLOSE, match, passage)).fetchone()
        if row and not all(type(value) is str for value in row):
            raise DamagedRowError(
                sql.index_name(connection), sql.read_document_id(connection, passage)
            )
        if row:
            highlights[passage] = find_words(*row)
    return highlights


def find_marked_terms(marked_terms: str, text: str) -> list[tuple[int, int]]:
    """Return start and end of the words of `text` whose terms are marked among its terms."""
    pieces = marked_terms.split(" ")
    return find_words(text, {strip_marks(piece) for piece in pieces if piece.startswith(OPEN)})


def _parse_marked_text(marked_text: str, _: str) -> list[tuple[int, int]]:
    return parse_marks(marked_text)


def _term_weights(connection: sqlite3.Connection, phrase: str, total: int) -> dict[str, float]:
    """Return for each term the factor from its FTS5 score to its Lucene score.

    A term that the phrase repeats counts as often. Terms that no passage contains are left out,
    and so are common ones beside rarer ones.
    """
    cut = query_terms if sql.has_terms(connection) else distinct_words
    repeats = Counter(map(quote, cut(phrase)))
    frequencies = {term: _frequency(connection, term) for term in repeats}
    # words of a text that was edited by hand stay behind when it is deleted, and are more than all
    frequencies = {term: min(count, total) for term, count in frequencies.items() if count}
    rare = {
        term: count
        for term, count in frequencies.items()
        if count <= COMMON * total or total < SMALL
    }
    return {
        term: repeats[term] * _lucene_factor(total, count)
        for term, count in (rare or frequencies).items()
    }


def _lucene_factor(total: int, count: int) -> float:
    """Return the factor from the FTS5 score of a term to its Lucene score."""
    return lucene_idf(total, count) / (fts5_idf(total, count) * (K1 + 1))


def quote(term: str) -> str:
    """Return the term as an FTS5 string literal, which is never read as query syntax."""
    return '"' + term.replace('"', '""') + '"'


def _frequency(connection: sqlite3.Connection, term: str) -> int:
    return int(
        connection.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (term,)).fetchone()[0]
    )


def fts5_idf(total: int, count: int) -> float:
    """Return FTS5's weight of a term that `count` of `total` passages contain."""
    return max(1e-6, math.log((total - count + 0.5) / (count + 0.5)))


def lucene_idf(total: int, count: int) -> float:
    """Return Lucene's weight of a term that `count` of `total` passages contain."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
