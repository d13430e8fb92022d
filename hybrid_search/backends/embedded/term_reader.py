"""What BM25 counts of each term: read and checked once for a term, and then remembered.

A common word is in the phrases of many queries, and in a third of the passages. To read where it
stands takes longer than all the rest of BM25.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.embedded import postings, schema
from hybrid_search.backends.embedded.postings import SharedLengths, Totals
from hybrid_search.backends.embedded.remembered import Remembered
from hybrid_search.backends.embedded.term_sums import PostingsCheck
from hybrid_search.text.types import Floats, Ints

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """The passages that contain a term, and its part of their scores.

    Attributes:
        rows: Where the passages stand among the lengths of all, int32 ``[passages]``.
        parts: What the term adds to the score of each without its weight, float32 ``[passages]``,
            as in Lucene; less than 1.
        is_damaged: Whether they are not those that were written.
    """

    rows: Ints
    parts: Floats
    is_damaged: bool

    def __len__(self) -> int:
        """Return how many passages they are; a row and a part have 8 bytes."""
        return len(self.rows)


class TermReader:
    """Reads the occurrences of terms by one connection, and remembers the latest of them.

    `lengths` are those of its index.
    """

    def __init__(self, lengths: SharedLengths) -> None:
        self.lengths = lengths
        self._remembered: Remembered[Occurrences] = Remembered()

    def read(
        self, connection: sqlite3.Connection, tokens: Sequence[bytes], totals: Totals
    ) -> Occurrences:
        """Return the occurrences of a term that has these `tokens`, at least one.

        Tables of the full-text index that contradict each other are an error.
        """
        return self._remembered.find(
            connection, tuple(tokens), lambda: self._read(connection, tokens, totals)
        )

    def _read(
        self, connection: sqlite3.Connection, tokens: Sequence[bytes], totals: Totals
    ) -> Occurrences:
        passages, frequencies = postings.read_postings(connection, tokens)
        lengths = self.lengths.refresh(connection)
        rows = lengths.find_rows(passages)
        if rows is None or (len(rows) and not totals.tokens):
            schema.raise_damage(connection, postings.LENGTHS_DAMAGE)
        check = PostingsCheck(connection)
        if len(tokens) == 1:
            check.compare_postings(tokens[0], passages, frequencies, lengths.tokens[rows])
        average = totals.tokens / max(totals.passages, 1)
        relative_lengths = lengths.tokens[rows] / average
        parts = frequencies / (frequencies + K1 * (1 - B + B * relative_lengths))
        return Occurrences(rows.astype(np.int32), parts.astype(np.float32), check.is_damaged)
