"""Measures the files of an index, and checks them as SQLite itself can."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from hybrid_search.backends.embedded import commits, head, schema, term_sums, value_sums
from hybrid_search.backends.embedded.number_columns import read_numbers
from hybrid_search.backends.embedded.segments import list_files
from hybrid_search.backends.types import Fault
from hybrid_search.errors import DamagedIndexError

WAIT_MILLISECONDS = 1000
"""How long the check of the full-text index waits for a writer; then it is left out."""


def measure(path: Path) -> tuple[int, datetime]:
    """Return the bytes of the files of an index, and when the last of them was written."""
    paths = [path, path.with_name(f"{path.name}-wal"), *list_files(path.with_suffix(".spans"))]
    statuses = [file.stat() for file in paths if file.exists()]
    # a reader makes an empty file of changes
    last = max(status.st_mtime for status in statuses if status.st_size)
    return sum(status.st_size for status in statuses), datetime.fromtimestamp(last, UTC)


def find_file_faults(path: Path, *, full: bool) -> list[Fault]:
    """Return what is wrong with a file as a whole; with `full` its indexes are checked, too."""
    mark = commits.read_mark(path.with_suffix(".lock"))
    try:
        connection, _ = schema.connect_reader(path)
        with closing(connection):
            faults = [*_find_page_faults(connection, full=full)]
            faults = faults or [*head.find_faults(connection)]
            faults += _find_lost(connection, path, mark)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not schema.is_damage(error):
            raise
        return [Fault("file", f"it cannot be read ({error})")]
    return faults or [*_find_text_faults(path)]


def _find_page_faults(connection: sqlite3.Connection, *, full: bool) -> Iterator[Fault]:
    check = "integrity_check" if full else "quick_check"
    (result,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    if result != "ok":
        yield Fault("file", f"its pages are damaged ({str(result).splitlines()[-1]})")
    elif full and (document_id := _find_wrong_metadata(connection)) is not None:
        yield Fault("file", f"the values that filters find of document {document_id!r} are damaged")
    elif full and not all(_lists_all(connection, table) for table in ("passages", "tokens")):
        yield Fault("file", "its list of passages is not the one that was written")
    elif full and not _has_sound_values(connection):
        yield Fault("file", "the sums that queries check its metadata by are damaged")


def _has_sound_values(connection: sqlite3.Connection) -> bool:
    try:
        value_sums.check_values(connection)
    except DamagedIndexError:
        return False
    return True


def _lists_all(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether a table has a row for each passage that was written, and no other."""
    with schema.read_transaction(connection):
        passages = read_numbers(connection, f"SELECT group_concat(passage) FROM {table}")
        return term_sums.has_all_passages(connection, passages)


def _find_wrong_metadata(connection: sqlite3.Connection) -> object:
    """Return the id of a document whose rows of metadata are not those of its JSON, if any."""
    query = "SELECT name, value FROM metadata WHERE document = ?"
    rows = connection.execute("SELECT document, id, metadata FROM documents")
    for document, document_id, metadata in rows:
        with suppress(ValueError, TypeError, AttributeError, RecursionError):  # its row is damaged
            expected = value_sums.list_rows(json.loads(metadata))
            stored = connection.execute(query, (document,)).fetchall()
            if sorted(map(repr, map(tuple, stored))) != sorted(map(repr, _as_stored(expected))):
                return document_id
    return None


def _as_stored(values: Sequence[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Yield names and values as SQLite returns them: it stores truth values as numbers."""
    for name, value in values:
        yield name, int(value) if isinstance(value, bool) else value


def _find_lost(
    connection: sqlite3.Connection, path: Path, mark: commits.CommitCount | None
) -> Iterator[Fault]:
    if lost := commits.describe_lost(path, mark, commits.read_count(connection)):
        yield Fault("commits", lost)


def _find_text_faults(path: Path) -> Iterator[Fault]:
    """Yield a fault if the full-text index is damaged, or is not that of the stored terms.

    SQLite runs this check for those alone who may write, though it writes nothing.
    """
    with suppress(sqlite3.OperationalError), closing(schema.connect(path)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {WAIT_MILLISECONDS}")
        if not _has_sound_texts(connection):
            yield Fault("file", "its full-text index is not that of its texts")
        elif not term_sums.are_sound(connection):
            yield Fault("file", "its full-text index and the sums that queries check it by differ")


def _has_sound_texts(connection: sqlite3.Connection) -> bool:
    """Return what FTS5 says of its index, True where it cannot look."""
    try:
        connection.execute("INSERT INTO texts (texts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return not schema.is_damage(error)
    return True
