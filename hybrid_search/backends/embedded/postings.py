"""What BM25 counts, read in bulk from the tables of FTS5: how often terms occur, and how many.

- ``fts5vocab`` of type ``instance`` lists every place of a token.
- ``texts_docsize`` has for each passage a blob with the number of tokens in each column.
- Row 1 of ``texts_data`` has the number of passages, and that of all tokens in each column.

The last two are varints of SQLite: groups of seven bits, the highest first, in bytes of which all
but the last have their eighth bit set.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded import schema
from hybrid_search.backends.embedded.number_columns import Numbers, parse_numbers, read_numbers

MAX_VARINT_BYTES = 9
MAX_LENGTH_BYTES = 5
"""What the number of tokens in a column takes at most; it has 32 bits."""

AVERAGES = 1
"""The row of ``texts_data`` with the totals that averages are computed from."""

INSTANCES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab (main, texts, instance)"
)
"""A view of the full-text index; it is of the connection alone, and nothing is written."""

LENGTHS_DAMAGE = "its full-text index does not know how long passages are"
"""What is wrong with an index whose full-text tables contradict each other."""

PLACE = np.dtype([("passage", np.int64), ("offset", np.int64)])


@dataclass(frozen=True, slots=True)
class Totals:
    """How many passages the full-text index has, and how many tokens in all."""

    passages: int
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class PassageLengths:
    """How many tokens each passage has.

    Attributes:
        passages: Passage numbers in ascending order, int64 ``[passages]``.
        tokens: Their numbers of tokens, int32 ``[passages]``.
    """

    passages: Numbers
    tokens: NDArray[np.int32]

    def find_rows(self, passages: Numbers) -> Numbers | None:
        """Return where each of `passages` stands here; None if one of them does not."""
        if not len(self.passages):
            return None if len(passages) else passages
        rows = np.searchsorted(self.passages, passages).clip(max=len(self.passages) - 1)
        return rows if np.array_equal(self.passages[rows], passages) else None


class SharedLengths:
    """The lengths of an index for several threads; what one has read of them, all use.

    The number of a passage is never given to another, and its text never changes. So a length stays
    as it is, and only those of later passages are read. A passage takes 12 bytes, and one that is
    deleted keeps them.
    """

    def __init__(self) -> None:
        self._latest = PassageLengths(np.zeros(0, np.int64), np.zeros(0, np.int32))
        self._lock = threading.Lock()

    def refresh(self, connection: sqlite3.Connection) -> PassageLengths:
        """Return the lengths of all passages that the connection sees, and maybe of more."""
        with self._lock:
            latest = self._latest
            last = int(latest.passages[-1]) if len(latest.passages) else -1
            new = _read_lengths(connection, last)
            if len(new.passages):
                self._latest = PassageLengths(
                    np.concatenate([latest.passages, new.passages]),
                    np.concatenate([latest.tokens, new.tokens]),
                )
            return self._latest


def read_totals(connection: sqlite3.Connection) -> Totals:
    """Return how many passages and tokens the full-text index has, as of the last commit.

    A record of them that cannot be read is an error.
    """
    query = "SELECT block FROM texts_data WHERE id = ? AND typeof(block) = 'blob'"
    (block,) = connection.execute(query, (AVERAGES,)).fetchone() or (b"\xff",)
    data = np.frombuffer(block, np.uint8)
    if not len(data):
        return Totals(0, 0)  # nothing has been inserted yet
    if data[-1] & 0x80:
        schema.raise_damage(connection, LENGTHS_DAMAGE)
    passages, *tokens = decode_varints(data, data < 0x80).tolist()
    return Totals(passages, sum(tokens))


def read_postings(
    connection: sqlite3.Connection, tokens: Sequence[bytes]
) -> tuple[Numbers, Numbers]:
    """Return the passages that contain `tokens`, at least one, in a row, and how often each does.

    Both are int64 ``[passages]``, the first in ascending order.
    """
    passages = [_read_instances(connection, token, "doc") for token in tokens]
    starts = passages[0]
    if len(tokens) > 1:
        offsets = [_read_instances(connection, token, "offset") for token in tokens]
        starts = _find_sequences(passages, offsets)
    return np.unique(starts, return_counts=True)


def _read_instances(connection: sqlite3.Connection, token: bytes, column: str) -> Numbers:
    """Return the passage ("doc") or the place in it ("offset") of each instance of a token."""
    connection.execute(INSTANCES)
    query = f"SELECT group_concat({column}) FROM instances WHERE term = CAST(? AS TEXT)"
    return read_numbers(connection, query, (token,))


def _find_sequences(passages: Sequence[Numbers], offsets: Sequence[Numbers]) -> Numbers:
    """Return the passage of each place where tokens stand one after the other.

    The instances of token i are in ``passages[i]`` at ``offsets[i]``. Those of one place have the
    same passage and the same offset, less i.
    """
    places = [
        np.stack([passages[number], offsets[number] - number], axis=1).view(PLACE)
        for number in range(len(passages))
    ]
    starts: Numbers = reduce(np.intersect1d, places)["passage"]
    return starts


def _read_lengths(connection: sqlite3.Connection, last: int) -> PassageLengths:
    """Return the lengths of the passages after `last`, without those that are damaged."""
    columns = len(connection.execute("SELECT * FROM texts LIMIT 0").description)
    query = (
        "SELECT group_concat(id), group_concat(length(sz)), group_concat(hex(sz), '') FROM ("
        "SELECT id, sz FROM texts_docsize WHERE id > ? AND typeof(sz) = 'blob' "
        "AND length(sz) BETWEEN ? AND ? ORDER BY id)"
    )
    values = (last, columns, columns * MAX_LENGTH_BYTES)
    passages, sizes, blobs = connection.execute(query, values).fetchone()
    data = np.frombuffer(bytes.fromhex(blobs or ""), np.uint8)
    is_sound, tokens = _sum_rows(data, parse_numbers(sizes), columns)
    return PassageLengths(parse_numbers(passages)[is_sound], tokens[is_sound].astype(np.int32))


def _sum_rows(
    data: NDArray[np.uint8], sizes: Numbers, columns: int
) -> tuple[NDArray[np.bool_], Numbers]:
    """Return which rows hold `columns` numbers, and the sum of each; row i has ``sizes[i]`` bytes.

    A row is damaged if it holds another number of them, or ends within one.
    """
    last_bytes = np.cumsum(sizes) - 1
    is_end = data < 0x80
    is_whole = is_end[last_bytes]
    is_end[last_bytes] = True  # what is damaged ends with its row
    rows = np.repeat(np.arange(len(sizes)), sizes)[is_end]
    counts = np.bincount(rows, minlength=len(sizes))
    sums = np.bincount(rows, decode_varints(data, is_end), len(sizes))
    return is_whole & (counts == columns), sums.astype(np.int64)


def decode_varints(data: NDArray[np.uint8], is_end: NDArray[np.bool_]) -> Numbers:
    """Return the numbers that bytes hold as varints; `is_end` marks the last byte of each.

    Of a number that has more than nine bytes the first nine are read.
    """
    ends = np.flatnonzero(is_end)
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    numbers = np.zeros(len(ends), np.int64)
    widths = (ends - starts + 1).clip(max=MAX_VARINT_BYTES)
    for place in range(widths.max(initial=0)):
        longer = np.flatnonzero(widths > place)
        groups = data[starts[longer] + place] & 0x7F
        numbers[longer] = numbers[longer] << 7 | groups
    return numbers
