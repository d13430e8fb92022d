"""Sums of what BM25 reads, kept for each term, show a changed byte of the full-text index.

FTS5's tables have no checksums, and bytes that change in them may change scores, or lose matches,
and leave the form. So the index stores for each token how many passages contain it, and the sum of
a weight for each place where it stands. The weight is a hash of the passage's number and length. A
query compares both with what it read. So it checks all that its scores are computed from, wherever
in FTS5's tables that was, and nothing else has to be read for it.

The sums are made from the texts, not from FTS5's tables, in the transaction that changes them. If
the number of the last commit is not that of the sums, the index is read without a check.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import commits, schema, tokenizer
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.postings import SharedLengths

BATCH = 2000
"""Texts that are cut into tokens at once; that takes about 0.1 s."""

SUM_MASK = 2**48 - 1
"""Sums are kept modulo 2**48, and weights have 40 bits: SQLite can add millions of them."""

_WEIGHT_SHIFT = np.uint64(24)
_MULTIPLIERS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9)))
_SHIFTS = tuple(map(np.uint64, (31, 29)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the sums were made of.

    Attributes:
        commit: The number of the commit they belong to.
        last: The highest number of a passage among them.
        passages: How many passages there are.
        tokens: How many tokens these have in all.
        total: The sum of the weights of the passages, as if all were without tokens.
    """

    commit: int = 0
    last: int = 0
    passages: int = 0
    tokens: int = 0
    total: int = 0

    def grow(self, passages: Numbers, tokens: int, sign: int) -> Coverage:
        """Return it with more passages, which have so many tokens; with fewer if `sign` is -1."""
        last = max(self.last, int(passages.max()))
        count = self.passages + sign * len(passages)
        total = self.total + sign * _sum_numbers(passages)
        return Coverage(self.commit, last, count, self.tokens + sign * tokens, total & SUM_MASK)

    def has_exactly(self, passages: Numbers) -> bool:
        """Return whether `passages` are all that there are, in any order."""
        return len(passages) == self.passages and _sum_numbers(passages) == self.total


def compute_weights(passages: Numbers, lengths: NDArray[np.integer]) -> Numbers:
    """Return a hash of 40 bits of the number and length of each passage, int64 ``[passages]``.

    Two rounds of multiplying and shifting, as in SplitMix64 (Steele, Lea and Flood, 2014).
    """
    by_passage, by_length, multiplier = _MULTIPLIERS
    weights = (passages.astype(np.uint64) * by_passage) ^ (lengths.astype(np.uint64) * by_length)
    weights ^= weights >> _SHIFTS[0]
    weights *= multiplier
    weights ^= weights >> _SHIFTS[1]
    weights *= multiplier
    return (weights >> _WEIGHT_SHIFT).astype(np.int64)


def _sum_numbers(passages: Numbers) -> int:
    """Return the sum of the weights of the numbers of passages, as of texts without tokens."""
    weights = compute_weights(passages, np.zeros_like(passages))
    return int(weights.sum()) & SUM_MASK


def read_coverage(connection: sqlite3.Connection) -> Coverage | None:
    """Return what the sums of an index were made of; None if it has none, or none of its state."""
    if not schema.has_table(connection, "term_sums"):  # texts alone, as measurements index them
        return None
    coverage = _parse_coverage(connection)
    is_current = coverage and coverage.commit == commits.read_count(connection).number
    return coverage if is_current else None


def _parse_coverage(connection: sqlite3.Connection) -> Coverage | None:
    query = "SELECT value FROM settings WHERE name = 'term_sums'"
    (text,) = connection.execute(query).fetchone() or ("",)
    with suppress(TypeError, ValueError, RecursionError):
        coverage = Coverage(**json.loads(text))
        if all(type(number) is int for number in asdict(coverage).values()):
            return coverage
    return None


# Writing


def make(connection: sqlite3.Connection) -> None:
    """Make the sums anew, from all texts."""
    discard(connection)
    update(connection)


def discard(connection: sqlite3.Connection) -> None:
    """Remove all sums: the next `update` makes them from all texts."""
    connection.execute("DELETE FROM term_sums")
    connection.execute("DELETE FROM settings WHERE name = 'term_sums'")


def update(connection: sqlite3.Connection) -> None:
    """Add the passages that are not among the sums yet, in the open transaction of the writer."""
    coverage = _parse_coverage(connection) or Coverage()
    for texts in _iterate_texts(connection, coverage.last):
        coverage = _add_texts(connection, "term_sums", texts, coverage)
    coverage = replace(coverage, commit=commits.read_count(connection).number)
    value = json.dumps(asdict(coverage))
    connection.execute("INSERT OR REPLACE INTO settings VALUES ('term_sums', ?)", (value,))


def subtract(connection: sqlite3.Connection, passages: Sequence[int]) -> None:
    """Take passages out of the sums whose texts are still there, and are those that were added."""
    coverage = _parse_coverage(connection)
    if coverage is None:
        return
    numbers = ",".join(str(passage) for passage in passages if passage <= coverage.last)
    query = f"SELECT id, c0 FROM texts_content WHERE id IN ({numbers}) AND typeof(c0) = 'text'"
    if texts := connection.execute(query).fetchall():
        coverage = _add_texts(connection, "term_sums", texts, coverage, sign=-1)
        value = json.dumps(asdict(coverage))
        connection.execute("UPDATE settings SET value = ? WHERE name = 'term_sums'", (value,))


Texts = Sequence[tuple[int, str]]
"""Numbers of passages, with what FTS5 indexes of each."""


def _iterate_texts(connection: sqlite3.Connection, last: int) -> Iterator[Texts]:
    """Yield the texts of the passages after `last`, without those that cannot be read."""
    query = (
        "SELECT id, c0 FROM texts_content WHERE id > ? AND typeof(c0) = 'text' ORDER BY id LIMIT ?"
    )
    while texts := connection.execute(query, (last, BATCH)).fetchall():
        yield [(number, text) for number, text in texts if isinstance(text, str)]
        last = texts[-1][0]


def _add_texts(
    connection: sqlite3.Connection, table: str, texts: Texts, coverage: Coverage, sign: int = 1
) -> Coverage:
    """Add texts to the sums in `table`, or take them away, and return what these are made of."""
    if not texts:
        return coverage
    lengths, sums = _sum_texts(tokenizer.find_tokenizer(connection), texts)
    connection.executemany(
        f"INSERT INTO {table} VALUES (?1, ?2 * ?4, ?3 * ?4 & {SUM_MASK}) ON CONFLICT DO UPDATE "
        f"SET passages = passages + excluded.passages, total = total + excluded.total & {SUM_MASK}",
        [(*row, sign) for row in sums],
    )
    numbers = np.array([number for number, _ in texts], np.int64)
    return coverage.grow(numbers, int(lengths.sum()), sign)


def _sum_texts(
    cutter: tokenizer.Tokenizer, texts: Texts
) -> tuple[Numbers, list[tuple[bytes, int, int]]]:
    """Return the length of each text that has tokens, and the sums of each token of them."""
    with cutter.insert(texts) as connection:
        query = "SELECT doc, count(*) FROM tokens GROUP BY doc"
        rows = np.array(connection.execute(query).fetchall(), np.int64).reshape(-1, 2)
        weights = compute_weights(rows[:, 0], rows[:, 1])
        values = zip(rows[:, 0].tolist(), weights.tolist(), strict=True)
        connection.executemany("INSERT INTO weights VALUES (?, ?)", values)
        query = (
            "SELECT term, count(DISTINCT doc), sum(weight) FROM tokens "
            "JOIN weights USING (doc) GROUP BY term"
        )
        return rows[:, 1], connection.execute(query).fetchall()


# Reading


class PostingsCheck:
    """Compares what a query reads of the full-text index with the sums; `is_damaged` is the result.

    Without sums it compares nothing.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._coverage = read_coverage(connection)
        self.is_damaged = False

    def compare_totals(self, passages: int, tokens: int) -> None:
        """Compare how many passages and tokens there are."""
        if self._coverage:
            self._expect((passages, tokens), (self._coverage.passages, self._coverage.tokens))

    def compare_postings(
        self,
        token: bytes,
        passages: Numbers,
        frequencies: Numbers,
        lengths: NDArray[np.integer],
    ) -> None:
        """Compare which passages have a token, how often, and their lengths, all ``[passages]``."""
        if self._coverage:
            total = int((compute_weights(passages, lengths) * frequencies).sum()) & SUM_MASK
            self._expect((len(passages), total), self._read(token))

    def _read(self, token: bytes) -> tuple[int, int]:
        query = "SELECT passages, total FROM term_sums WHERE token = ?"
        return self._connection.execute(query, (token,)).fetchone() or (0, 0)

    def _expect(self, actual: object, stored: object) -> None:
        self.is_damaged = self.is_damaged or actual != stored


def has_all_passages(connection: sqlite3.Connection, passages: Numbers) -> bool:
    """Return whether `passages` are those of the index; True if it has no sums."""
    coverage = read_coverage(connection)
    return coverage is None or coverage.has_exactly(passages)


def are_sound(connection: sqlite3.Connection) -> bool:
    """Return whether the sums are those of the texts, and of the lengths; True if there are none.

    FTS5's own check does not look at the length of a column that is not indexed.
    """
    coverage = read_coverage(connection)
    if coverage is None:
        return True
    lengths = SharedLengths().refresh(connection)
    if (len(lengths.passages), lengths.tokens.sum()) != (coverage.passages, coverage.tokens):
        return False
    table = "temp.expected_sums"
    connection.execute(f"CREATE TABLE {table} ({schema.TERM_SUMS}) WITHOUT ROWID")
    expected = Coverage(coverage.commit)
    for texts in _iterate_texts(connection, 0):
        expected = _add_texts(connection, table, texts, expected)
    stored, made = (f"SELECT * FROM {name} WHERE passages" for name in ("term_sums", table))
    differences = f"SELECT 1 FROM ({stored} EXCEPT {made}) UNION ALL SELECT 1 FROM ({{}})"
    query = differences.format(f"{made} EXCEPT {stored}")
    is_same = connection.execute(query).fetchone() is None
    return is_same and replace(expected, last=coverage.last) == coverage
