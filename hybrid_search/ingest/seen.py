"""Ids that this run has met, in a temporary file: a run of any length takes the same memory."""

from __future__ import annotations

import sqlite3


class Seen:
    """Remembers where an id was last met."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # "" is a file that SQLite deletes itself
        self._connection.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID")

    def add(self, id: str, place: str) -> str | None:
        """Where `id` was before, or None."""
        before = self._connection.execute("SELECT place FROM seen WHERE id = ?", (id,)).fetchone()
        self._connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (id, place))
        return str(before[0]) if before else None

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()
