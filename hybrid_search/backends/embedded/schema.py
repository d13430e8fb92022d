"""The SQLite file of an index: its tables, its connections, and the lock of its writer.

SQLite has the data itself: documents, metadata, passages, BM25 and token codes, one transaction a
batch. The nearest-neighbour files beside it are derived from the codes and can be rebuilt.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid_search.errors import IndexBusyError, IndexStoreError

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* M* N* P* S* C*'"
"""FTS5's tokenizer: it takes off accents, and stems. Only blanks part what it is given."""

TABLES = f"""
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fields (name TEXT PRIMARY KEY, type TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    document INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source_hash TEXT NOT NULL,
    passages INTEGER NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metadata (document INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL);
CREATE INDEX IF NOT EXISTS metadata_by_value ON metadata (name, value, document);
CREATE INDEX IF NOT EXISTS metadata_by_document ON metadata (document);
CREATE TABLE IF NOT EXISTS passages (
    passage INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, start INTEGER NOT NULL, spans INTEGER NOT NULL, layout TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS passages_by_document ON passages (document, ordinal);
CREATE TABLE IF NOT EXISTS tokens (passage INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, last INTEGER NOT NULL,
    vectors INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,
    sha256 TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (
    terms, text UNINDEXED, tokenize = "{TOKENIZER}");
"""
# An index of an earlier version has one column, text, which FTS5 cut into terms by itself.
# Passage numbers are never reused (AUTOINCREMENT): a graph may still contain the vector of a
# passage that was replaced, which can then not be taken for another passage's.

BUSY_SECONDS = 30.0
"""How long a connection waits for a lock that another process holds."""

MAPPED_BYTES = 2**31 - 65536
"""The most that SQLite maps in its default build; the rest of the file is read as usual."""


def connect(path: Path | str, *, mapped: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode; transactions are begun explicitly.

    Different threads may use it, but only one at a time. With `mapped` the file is memory-mapped:
    codes are then not copied page by page, and are cached by the system only.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if mapped:
        connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    return connection


@contextmanager
def translate_errors(path: Path | str) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as ours, with the file and the remedy.

    Raises:
        IndexStoreError: If the disk is full or fails, or the file is damaged or not accessible.
        IndexBusyError: If another process locks the file for too long.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise IndexStoreError(
                f"the disk is full at {path}: what was committed is safe. "
                "Free space and run the same command again."
            ) from error
        if "locked" in str(error):
            raise IndexBusyError(
                f"{path} has been locked by another process for over {BUSY_SECONDS:.0f} s: "
                "wait for it to end, then try again"
            ) from error
        raise IndexStoreError(
            f"{path}: {error}. "
            "What was committed is safe: check the disk and run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        raise IndexStoreError(
            f"{path} is damaged ({error}): restore it from a backup, or delete it and ingest again"
        ) from error
    except OSError as error:
        raise IndexStoreError(
            f"{error.filename or path}: {error.strerror}: "
            "use another folder, or let this user write there"
        ) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that the block writes, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class WriterLock:
    """Ensures that an index has one writer, across processes.

    It is an exclusive transaction in a file of its own: the system releases it when the process
    dies.

    Raises:
        IndexBusyError: If another process has the lock.
    """

    def __init__(self, path: Path, index: str) -> None:
        self._connection = sqlite3.connect(
            path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._connection.close()
            if "locked" not in str(error):
                raise
            raise IndexBusyError(
                f"index {index!r} is being written by another process: "
                "wait for it to end, or use another index name"
            ) from error

    def release(self) -> None:
        """Let the next writer in."""
        self._connection.close()
