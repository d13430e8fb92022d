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

import logging
import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import postings, schema, sql, tokenizer
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.passage_documents import PassageDocuments
from hybrid_search.backends.embedded.term_reader import Occurrences, TermReader
from hybrid_search.backends.embedded.term_sums import PostingsCheck
from hybrid_search.backends.highlight_markers import OPEN, strip_marks
from hybrid_search.backends.types import DamagedRowError, Key
from hybrid_search.backends.window import choose_window
from hybrid_search.text.terms import find_words, query_terms

_log = logging.getLogger(__name__)

COMMON = 0.5
"""A term in a larger share of the passages than this is skipped beside rarer ones.

Such terms cost the most time and distinguish the least.
"""
SMALL = 1000
"""In an index with fewer passages than this every term is used."""

WINDOWS_RANKED = 4
"""How many times the window is ranked first; more if that holds too few documents."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """All passages that match.

    Attributes:
        passages: Passage numbers in ascending order, int64 ``[passages]``.
        scores: BM25 scores, float64 ``[passages]``.
        is_damaged: Whether the full-text index is not the one that was written, so that scores may
            be wrong and matches missing.
    """

    passages: NDArray[np.int64]
    scores: NDArray[np.float64]
    is_damaged: bool = False

    def best_scores(self, window: int, documents: PassageDocuments) -> dict[Key, float]:
        """Return the scores of the passages in the window, equal ones in the order of numbers."""
        count = WINDOWS_RANKED * window
        while True:
            ranked = self._rank(count)
            found = documents.find(self.passages[ranked]).tolist()
            if count >= len(self.scores) or len(set(found)) >= window:
                break
            count *= WINDOWS_RANKED
        order = ranked[choose_window(found, window)]
        return dict(zip(self.passages[order].tolist(), self.scores[order].tolist(), strict=True))

    def _rank(self, count: int) -> Numbers:
        """Return the rows of the best `count` passages, the best first."""
        candidates = np.arange(len(self.scores))
        if count < len(candidates):
            lowest = np.partition(self.scores, -count)[-count]
            candidates = np.flatnonzero(self.scores >= lowest)
        return candidates[np.argsort(-self.scores[candidates], kind="stable")[:count]]

    def scores_of(self, passages: Sequence[Key]) -> list[float]:
        """Return the score of each of `passages`; 0 for those that do not match."""
        if not len(self.passages):
            return [0.0] * len(passages)
        numbers = np.array(passages, dtype=np.int64)
        positions = np.searchsorted(self.passages, numbers).clip(max=len(self.passages) - 1)
        matches = self.passages[positions] == numbers
        scores: list[float] = np.where(matches, self.scores[positions], 0.0).tolist()
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term of a phrase, where it occurs, and what it weighs in a score."""

    text: str
    occurrences: Occurrences
    weight: float


def search(
    connection: sqlite3.Connection,
    phrase: str,
    term_reader: TermReader,
    allowed: Numbers | None = None,
) -> Matches:
    """Return the BM25 score of every passage that contains a word of `phrase`.

    `term_reader` is that of the connection. `allowed` are the passages that a filter leaves.
    """
    with schema.read_transaction(connection):
        check = PostingsCheck(connection)
        terms = _weigh_terms(connection, phrase, term_reader, check)
        lengths = term_reader.lengths.refresh(connection)
    scores = np.zeros(len(lengths.passages))
    for term in terms:
        parts = term.occurrences.parts.astype(np.float64)  # a product of float32 rounds twice more
        scores[term.occurrences.rows] += term.weight * parts
    rows = np.flatnonzero(scores)
    if allowed is not None:
        rows = rows[np.isin(lengths.passages[rows], allowed)]
    return Matches(lengths.passages[rows], scores[rows], check.is_damaged)


def report_damage(index: str) -> str:
    """Log and return the warning about a full-text index that is not the one that was written."""
    warning = (
        f"the full-text index of index {index!r} is damaged: BM25 scores may be wrong, and matches "
        f"missing. To mend this: hybrid-search verify --index {index} --repair"
    )
    _log.warning("%s", warning)
    return warning


def find_highlights(
    connection: sqlite3.Connection, phrase: str, passages: Sequence[Key], term_reader: TermReader
) -> dict[Key, list[tuple[int, int]]]:
    """Return start and end of the words that BM25 matched in each of `passages`.

    They are found in the texts of the passages, and not by the full-text index.
    """
    with schema.read_transaction(connection):
        terms = _weigh_terms(connection, phrase, term_reader, PostingsCheck(connection))
    match = " OR ".join(quote(term.text) for term in terms)
    texts = _read_texts(connection, passages) if match else {}
    indexed_texts = {number: indexed_text for number, (indexed_text, _) in texts.items()}
    marked = tokenizer.find_tokenizer(connection).mark(indexed_texts, match) if texts else {}
    return {
        passage: find_marked_terms(marked[passage], texts[passage][1])
        for passage in passages
        if passage in marked
    }


def _read_texts(
    connection: sqlite3.Connection, passages: Sequence[Key]
) -> dict[Key, tuple[str, str]]:
    """Return what FTS5 indexes of each passage that still exists, and its text.

    Raises:
        DamagedRowError: If the text of one cannot be read.
    """
    query = "SELECT terms, text FROM texts WHERE rowid = ?"
    texts: dict[Key, tuple[str, str]] = {}
    for passage in passages:
        row = connection.execute(query, (passage,)).fetchone()
        if row and not all(type(value) is str for value in row):
            raise DamagedRowError(
                schema.index_name(connection), sql.read_document_id(connection, passage)
            )
        if row:
            texts[passage] = row
    return texts


def find_marked_terms(marked_terms: str, text: str) -> list[tuple[int, int]]:
    """Return start and end of the words of `text` whose terms are marked among its terms."""
    pieces = marked_terms.split(" ")
    return find_words(text, {strip_marks(piece) for piece in pieces if piece.startswith(OPEN)})


def _weigh_terms(
    connection: sqlite3.Connection, phrase: str, term_reader: TermReader, check: PostingsCheck
) -> list[Term]:
    """Return the terms of a phrase with their idf, times how often the phrase has them.

    Terms that no passage contains are left out, and so are common ones beside rarer ones.
    """
    totals = postings.read_totals(connection)
    check.compare_totals(totals.passages, totals.tokens)
    repeats = Counter(query_terms(phrase))
    tokens = tokenizer.find_tokenizer(connection).cut(list(repeats)) if repeats else []
    frequencies: dict[Term, int] = {}
    for (text, repeat), term_tokens in zip(repeats.items(), tokens, strict=True):
        if not term_tokens:
            continue
        occurrences = term_reader.read(connection, term_tokens, totals)
        check.is_damaged |= occurrences.is_damaged
        # words of a text that was edited by hand stay behind when it is deleted: more than all
        if count := min(len(occurrences.rows), totals.passages):
            weight = repeat * lucene_idf(totals.passages, count)
            frequencies[Term(text, occurrences, weight)] = count
    limit = COMMON * totals.passages if totals.passages >= SMALL else totals.passages
    rare = [term for term, count in frequencies.items() if count <= limit]
    return rare or list(frequencies)


def quote(term: str) -> str:
    """Return the term as an FTS5 string literal, which is never read as query syntax."""
    return '"' + term.replace('"', '""') + '"'


def lucene_idf(total: int, count: int) -> float:
    """Return Lucene's weight of a term that `count` of `total` passages contain."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
