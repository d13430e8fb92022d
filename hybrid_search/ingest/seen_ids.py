"""Ids seen in a run, in a temporary file, so memory does not grow with the run."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_search.errors import IndexStoreError

Seen = tuple[str, str]
"""The place where an id was seen, and the digest of its document."""


@contextmanager
def translate_database_errors(content: str) -> Iterator[None]:
    """Translate errors of a temporary database to IndexStoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise IndexStoreError(
            f"the {content} cannot be stored in the temporary folder: {error}. "
            "Free space there, or set SQLITE_TMPDIR to another folder"
        ) from error


class SeenIds:
    """A record of where each id was last seen. May be closed while another thread adds to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # closing a connection that is in use crashes the process
        self._connection = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )  # "" is a file that SQLite deletes itself
        self._connection.execute(
            "CREATE TABLE seen (id TEXT PRIMARY KEY, place TEXT NOT NULL, digest TEXT NOT NULL) "
            "WITHOUT ROWID"
        )

    def add(self, id: str, place: str, digest: str) -> Seen | None:
        """Return where `id` was seen before, or None, and record it at `place`."""
        with translate_database_errors("ids of this run"), self._lock:
            find = "SELECT place, digest FROM seen WHERE id = ?"
            earlier: Seen | None = self._connection.execute(find, (id,)).fetchone()
            row = id, place, digest
            self._connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", row)
        return earlier

    def close(self) -> None:
        """Forget all ids."""
        with self._lock:
            self._connection.close()
