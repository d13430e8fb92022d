"""BM25 of an embedded index, computed from FTS5's tables on the scale of Lucene.

The score of a passage is the sum over the terms of a phrase of
``idf * tf / (tf + k1 * (1 - b + b * length / average))`` with k1 = 1.2, b = 0.75 and
``idf = ln(1 + (N - n + 0.5) / (n + 0.5))``, as Lucene has computed it since version 8, but with the
lengths of passages as they are: Lucene rounds them.

FTS5's own ``bm25()`` has another idf, ``max(1e-6, ln((N - n + 0.5) / (n + 0.5)))``: there a term in
half of the passages or more weighs nothing, and in a small index that is every term. It also reads
passage by passage what `postings` reads at once, which takes several times as long.

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

from hybrid_search.backends.embedded import postings, schema, sql, tokenizer
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.postings import PassageLengths, SharedLengths, Totals
from hybrid_search.backends.highlight_markers import CLOSE, OPEN, parse_marks, strip_marks
from hybrid_search.backends.types import DamagedRowError, Key
from hybrid_search.errors import DamagedIndexError
from hybrid_search.text.terms import find_words, query_terms
from hybrid_search.text.words import distinct_words

K1, B = 1.2, 0.75
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
        candidates = np.arange(len(self.scores))
        if limit < len(candidates):
            lowest = np.partition(self.scores, -limit)[-limit]
            candidates = np.flatnonzero(self.scores >= lowest)
        order = candidates[np.argsort(-self.scores[candidates], kind="stable")[:limit]]
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
    shared_lengths: SharedLengths,
    allowed: Numbers | None = None,
) -> Matches:
    """Return the BM25 score of every passage that contains a word of `phrase`.

    `shared_lengths` are those of this index. `allowed` are the passages that a filter leaves.
    """
    with schema.read_transaction(connection):
        totals = postings.read_totals(connection)
        weights = _term_weights(connection, phrase, totals.passages)
        lengths = shared_lengths.refresh(connection)
        scores = np.zeros(len(lengths.passages))
        tokens = tokenizer.find_tokenizer(connection).cut(list(weights))
        for term_tokens, weight in zip(tokens, weights.values(), strict=True):
            rows, parts = _score_term(connection, term_tokens, lengths, totals)
            scores[rows] += weight * parts
    rows = np.flatnonzero(scores)
    if allowed is not None:
        rows = rows[np.isin(lengths.passages[rows], allowed)]
    return Matches(lengths.passages[rows], scores[rows])


def _score_term(
    connection: sqlite3.Connection, tokens: Sequence[bytes], lengths: PassageLengths, totals: Totals
) -> tuple[Numbers, NDArray[np.float64]]:
    """Return the rows of `lengths` whose passages contain a term, and its part of their scores.

    The part is without the term's weight, and less than 1.

    Raises:
        DamagedIndexError: If the tables of the full-text index contradict each other.
    """
    passages, frequencies = postings.read_postings(connection, tokens)
    rows = lengths.find_rows(passages)
    if rows is None or (len(rows) and not totals.tokens):
        raise DamagedIndexError(postings.describe_damage(connection))
    average = totals.tokens / max(totals.passages, 1)
    relative_lengths = lengths.tokens[rows] / average
    return rows, frequencies / (frequencies + K1 * (1 - B + B * relative_lengths))


def build_match_expression(connection: sqlite3.Connection, phrase: str) -> str:
    """Return the FTS5 expression that matches the passages that `search` finds.

    It is empty if no passage can match.
    """
    total = postings.read_totals(connection).passages
    return " OR ".join(map(quote, _term_weights(connection, phrase, total)))


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
    """Return for each term its idf, times how often the phrase has it.

    Terms that no passage contains are left out, and so are common ones beside rarer ones.
    """
    cut = query_terms if sql.has_terms(connection) else distinct_words
    repeats = Counter(cut(phrase))
    frequencies = {term: _frequency(connection, term) for term in repeats}
    # words of a text that was edited by hand stay behind when it is deleted, and are more than all
    frequencies = {term: min(count, total) for term, count in frequencies.items() if count}
    rare = {
        term: count
        for term, count in frequencies.items()
        if count <= COMMON * total or total < SMALL
    }
    return {
        term: repeats[term] * lucene_idf(total, count)
        for term, count in (rare or frequencies).items()
    }


def quote(term: str) -> str:
    """Return the term as an FTS5 string literal, which is never read as query syntax."""
    return '"' + term.replace('"', '""') + '"'


def _frequency(connection: sqlite3.Connection, term: str) -> int:
    """Return how many passages contain a term."""
    query = "SELECT count(*) FROM texts WHERE texts MATCH ?"
    return int(connection.execute(query, (quote(term),)).fetchone()[0])


def lucene_idf(total: int, count: int) -> float:
    """Return Lucene's weight of a term that `count` of `total` passages contain."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
