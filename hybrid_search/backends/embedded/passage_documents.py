"""Which document each passage of an embedded index belongs to, read once and then remembered."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.embedded.number_columns import Numbers, parse_numbers
from hybrid_search.backends.types import Key


@dataclass(frozen=True, slots=True, eq=False)
class PassageDocuments:
    """The passages of an index in ascending order, and the number of the document of each.

    Both int64 ``[passages]``. Deleted passages are among them.
    """

    passages: Numbers
    documents: Numbers

    def find(self, passages: Sequence[Key] | Numbers) -> Numbers:
        """Return the document of each passage; one without a document has one of its own."""
        numbers = np.asarray(passages, np.int64)
        if not len(self.passages):
            return -numbers
        rows = np.searchsorted(self.passages, numbers).clip(max=len(self.passages) - 1)
        return np.where(self.passages[rows] == numbers, self.documents[rows], -numbers)

    def count(self, passages: Sequence[Key] | Numbers) -> int:
        """Return how many documents some passages are of."""
        return len(set(self.find(passages).tolist()))  # of some hundred sooner than np.unique


class SharedDocuments:
    """The documents of all passages for several threads; what one has read, all use.

    The number of a passage is never given to another, so only later passages are read. A passage
    takes 16 bytes.
    """

    def __init__(self) -> None:
        self._latest = PassageDocuments(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._lock = threading.Lock()

    def refresh(self, connection: sqlite3.Connection) -> PassageDocuments:
        """Return the documents of all passages that the connection sees, and maybe of more."""
        with self._lock:
            latest = self._latest
            last = int(latest.passages[-1]) if len(latest.passages) else 0
            newest = connection.execute("SELECT max(passage) FROM passages").fetchone()[0]
            if newest is not None and newest > last:
                new = _read_after(connection, last)
                self._latest = PassageDocuments(
                    np.concatenate([latest.passages, new.passages]),
                    np.concatenate([latest.documents, new.documents]),
                )
            return self._latest


def _read_after(connection: sqlite3.Connection, passage: int) -> PassageDocuments:
    """Return the documents of the passages behind one; 0 where a damaged index has no number."""
    # without a condition the index of documents is read, which has no layouts
    condition = f" WHERE passage > {passage}" if passage else ""
    query = (
        "SELECT group_concat(passage), group_concat(coalesce(CAST(document AS INTEGER), 0)) "
        f"FROM passages{condition}"
    )
    passages, documents = map(parse_numbers, connection.execute(query).fetchone())
    order = np.argsort(passages, kind="stable")
    return PassageDocuments(passages[order], documents[order])
