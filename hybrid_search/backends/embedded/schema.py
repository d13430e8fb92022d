"""The SQLite file of an index: its tables, its connections, and its errors.

SQLite has the data itself: documents, metadata, passages, BM25 and word codes, one transaction a
batch. The segments beside it are derived from the codes and can be rebuilt.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from hybrid_search import private_files
from hybrid_search.backends.types import SCHEMA
from hybrid_search.errors import DamagedIndexError, IndexBusyError, IndexStoreError

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* M* N* P* S* C*'"
"""FTS5's tokenizer: it takes off accents, and stems. Only blanks part what it is given."""

APPLICATION = int.from_bytes(b"HySp")
"""SQLite's mark of the program that a file belongs to."""

TERM_SUMS = "token BLOB PRIMARY KEY, passages INTEGER NOT NULL, total INTEGER NOT NULL"
"""The columns of the table of `term_sums`, and of another one that `verify` compares with it."""

TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE fields (name TEXT PRIMARY KEY, type TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    document INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source_hash TEXT NOT NULL,
    passages INTEGER NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE metadata (document INTEGER NOT NULL, name TEXT NOT NULL, value NOT NULL);
CREATE INDEX metadata_by_value ON metadata (name, value, document);
CREATE INDEX metadata_by_document ON metadata (document);
CREATE TABLE passages (
    passage INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, start INTEGER NOT NULL, spans INTEGER NOT NULL, layout TEXT NOT NULL);
CREATE UNIQUE INDEX passages_by_document ON passages (document, ordinal);
CREATE TABLE tokens (passage INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, last INTEGER NOT NULL,
    passages INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
    sha256 TEXT NOT NULL);
CREATE TABLE checksums (
    passage INTEGER PRIMARY KEY, content INTEGER NOT NULL, codes INTEGER NOT NULL);
CREATE TABLE left_out (passage INTEGER PRIMARY KEY);
CREATE TABLE centroids (identity INTEGER PRIMARY KEY, passages INTEGER, data BLOB);
CREATE TABLE value_sums (
    name TEXT NOT NULL, value NOT NULL, rows INTEGER NOT NULL, total INTEGER NOT NULL,
    PRIMARY KEY (name, value)) WITHOUT ROWID;
CREATE TABLE term_sums ({TERM_SUMS}) WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5 (
    terms, text UNINDEXED, tokenize = "{TOKENIZER}");
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
COMMIT;
"""
# Passage numbers are never reused (AUTOINCREMENT): a segment may still contain the codes of a
# passage that was replaced, which can then not be taken for another passage's. term_sums tell
# whether the full-text index is sound, value_sums whether metadata is. left_out are passages with
# damaged codes, which no segment has: queries tell of them.

BUSY_SECONDS = 30.0
"""How long a connection waits for a lock that another process holds."""

MAPPED_BYTES = 2**31 - 65536
"""The most that SQLite maps in its default build; the rest of the file is read as usual."""

PRIMARY_CODE = 0xFF
"""Mask of SQLite's error codes that leaves the kind of error, without its details."""


def connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection that may write, in autocommit mode; transactions are begun explicitly.

    Different threads may use it, but only one at a time.
    """
    connection = _open(Path(path), "mode=rw")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def close_writer(connection: sqlite3.Connection) -> None:
    """Close a connection that wrote, after moving what it wrote into the file itself.

    SQLite does so when the last connection closes, but not if that one is a reader's. What cannot
    be moved, for lack of space or because of a reader, is safe where it is.
    """
    with closing(connection), suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 1000")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def create(path: Path) -> None:
    """Make the file of an index with its tables, unless it has them.

    A file of another program or format is not changed: `check_owner` raises its error.
    """
    private_files.create_empty_file(path)
    with closing(_open(path, "mode=rw")) as connection:
        check_owner(connection, path)
        is_ours = connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        if not is_ours:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)


CODES_CHECKSUM = ("checksums.codes", "LEFT JOIN checksums USING (passage)")
"""The column with the checksum of a passage's word codes, and the join that it needs."""


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the file has a table of this name."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


def index_name(connection: sqlite3.Connection) -> str:
    """Return the name of an open index, that of its file."""
    return Path(connection.execute("PRAGMA database_list").fetchone()[2]).stem


def copy(connection: sqlite3.Connection, path: Path) -> None:
    """Copy the open index to `path`, where nothing may be, without the space of deleted rows."""
    private_files.create_empty_file(path)
    connection.execute("VACUUM INTO ?", (str(path),))


def remove(path: Path) -> None:
    """Remove the file of an index, and SQLite's own files beside it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def replace(path: Path, new_path: Path) -> None:
    """Put a closed index in the place of another, which only its readers may have open.

    Raises:
        IndexBusyError: If a reader keeps the old one's latest changes out of its file.
    """
    connection = connect(path)
    with closing(connection):
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise IndexBusyError(f"{path} is being read for long: run the same command again")
    # SQLite would read the old one's changes into the new one; its readers keep theirs open
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    new_path.replace(path)


def check_owner(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a file is an index of this format, or empty.

    Raises:
        IndexStoreError: If it is not.
    """
    (entries,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION:
        if version != SCHEMA:
            raise IndexStoreError(
                f"{path} has format {version}, and this version of the program reads format "
                f"{SCHEMA}: ingest again into a new index"
            )
    elif application or entries:
        raise IndexStoreError(
            f"{path} is a database of another program (application id {application}, where an "
            f"index has {APPLICATION}), and was left as it is: "
            "move it away, or use another folder or index name"
        )


def connect_reader(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that cannot write, and whether it takes SQLite's locks.

    The file is memory-mapped: codes are then not copied page by page, and are cached by the system
    only. In a folder that this user may not write SQLite cannot make the file of its locks. The
    index is then read as one that nobody writes (`snapshot` tells if somebody does), and an
    IndexStoreError says if there are changes beside it that cannot be read so.
    """
    try:
        return _open_checked(path, "mode=ro"), True
    except sqlite3.OperationalError as error:
        _check_readable(path, error)
        return _open_checked(path, "mode=ro&immutable=1"), False


def _open_checked(path: Path, parameters: str) -> sqlite3.Connection:
    connection = _open(path, parameters)
    try:
        check_owner(connection, path)
        connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _error_kind(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error, 0 for one that the Python module raised."""
    return int(getattr(error, "sqlite_errorcode", 0)) & PRIMARY_CODE


def is_damage(error: Exception) -> bool:
    """Return whether an error is of a damaged file, and not of a lock, the disk or a permission."""
    if isinstance(error, sqlite3.OperationalError):
        return _error_kind(error) == sqlite3.SQLITE_ERROR  # a table that is not there
    return isinstance(error, (sqlite3.DatabaseError, UnicodeDecodeError))


def snapshot(path: Path, *, has_locks: bool) -> tuple[int, ...]:
    """Return what a reader's connection can be recognised by to be out of date.

    If another process drops the index and creates it again, an open connection would still show
    the old one. A connection without locks does not see any change.
    """
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    if has_locks:
        return identity
    return (*identity, status.st_size, status.st_mtime_ns, _count_bytes(_changes_file(path)))


def remove_idle_files(path: Path) -> None:
    """Remove SQLite's own files beside an index that nobody has open any more.

    Closing a connection that may write does that; a reader leaves them. They do no harm, so an
    index that this user may not write, or that is damaged or gone, is left as it is.
    """
    with suppress(sqlite3.Error), closing(_open(path, "mode=rw")) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()


def _open(path: Path, parameters: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{parameters}",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    connection.text_factory = _decode
    return connection


def _decode(data: bytes) -> str | bytes:
    """Return a text, or the bytes of a damaged one, which its row's reader recognises by type.

    SQLite's module would quote the text in an error that does not say whose it is.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _changes_file(path: Path) -> Path:
    """Return SQLite's file with changes that are not in the file of the index yet."""
    return path.with_name(f"{path.name}-wal")


def _count_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_readable(path: Path, error: sqlite3.OperationalError) -> None:
    """Raise an error if an index that SQLite cannot lock, by `error`, cannot be read either."""
    if _error_kind(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        raise error
    if not os.access(path, os.R_OK):
        raise IndexStoreError(
            f"{path} may not be read by this user: let this user read the files of the index"
        )
    changes = _changes_file(path)
    if size := _count_bytes(changes):
        raise IndexStoreError(
            f"{path} cannot be read alone: {changes.name} beside it has {size:,} bytes of later "
            "changes, and this user may not write in the folder, as SQLite must to read them. "
            "Query the index once as a user who may, or query a copy in another folder"
        )


def describe_damage(path: Path, why: str) -> str:
    """Return the message about a damaged file of which something may be saved."""
    return (
        f"{path} is damaged ({why}): hybrid-search verify --index {path.stem} --repair saves what "
        "can be read. Or restore it from a backup, or delete it and ingest again"
    )


def raise_damage(connection: sqlite3.Connection, why: str) -> NoReturn:
    """Raise DamagedIndexError about an open index."""
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    raise DamagedIndexError(describe_damage(path, why))


@contextmanager
def translate_errors(
    path: Path, describe: Callable[[Path, str], str] = describe_damage
) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as ours, with the file and the remedy.

    `describe` makes the message about a damaged file, of its path and what SQLite says.

    Raises:
        IndexStoreError: If the disk is full or fails, or the file is not accessible.
        DamagedIndexError: If the file is damaged.
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
        if _error_kind(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise IndexStoreError(
                f"{path} cannot be written ({error}): let this user write the file and its "
                "folder, and remove it if it is a broken link, or use another folder"
            ) from error
        if "UTF-8" in str(error):  # the message goes on with the text itself
            raise DamagedIndexError(describe(path, "a text is not UTF-8")) from None
        if is_damage(error):
            raise DamagedIndexError(describe(path, str(error))) from error
        raise IndexStoreError(
            f"{path}: {error}. "
            "What was committed is safe: check the disk and run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        raise DamagedIndexError(describe(path, str(error))) from error
    except UnicodeDecodeError as error:  # of a message of SQLite that quotes its schema
        raise DamagedIndexError(describe(path, "its schema is not UTF-8")) from error
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


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Let all statements of the block read the index as it is at the first of them."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")  # of nothing but temporary tables
