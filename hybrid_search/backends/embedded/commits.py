"""Counts the commits of an index, in it and beside it, so that commits that are lost are noticed.

A writer that is killed leaves its last commits in SQLite's write-ahead log. If bytes of that log
change, SQLite takes the place for its end, and what follows is gone without a word. So each commit
raises a number in the index, and then writes it into the file of the writer's lock. If that number
is larger than the one in the index, commits are missing.

A process that is killed between the two leaves the smaller number, which means nothing. An index
has an identity of its own, so that the number of another one that had its name means nothing
either.
"""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid_search.private_files import read_plain_file

MARK_BYTES = 200
"""The most that a mark takes; a file that holds more is no mark."""


@dataclass(frozen=True, slots=True)
class CommitCount:
    """How often an index was committed; `identity` tells it from others of its name."""

    identity: str
    number: int


def raise_count(connection: sqlite3.Connection) -> CommitCount:
    """Count one more commit in the open transaction; an index without an identity gets one."""
    values = [("identity", secrets.token_hex(8)), ("commits", "0")]
    connection.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?)", values)
    connection.execute("UPDATE settings SET value = value + 1 WHERE name = 'commits'")
    return read_count(connection)


def read_count(connection: sqlite3.Connection) -> CommitCount:
    """Return identity and number of commits of an index; "" and 0 if it counts none."""
    query = "SELECT name, value FROM settings WHERE name IN ('identity', 'commits')"
    values = dict(connection.execute(query))
    return CommitCount(str(values.get("identity", "")), _parse_number(values.get("commits")))


def format_mark(count: CommitCount) -> bytes:
    """Return what the file beside the index holds, one line with a checksum."""
    text = f"commits {count.identity} {count.number}"
    return f"{text} {zlib.crc32(text.encode()):08x}\n".encode()


def read_mark(lock_path: Path) -> CommitCount | None:
    """Return what the file beside the index holds; None if it is damaged, or no mark at all."""
    with suppress(OSError):
        words = read_plain_file(lock_path, MARK_BYTES).decode(errors="replace").split(" ")
        if len(words) == 4:
            count = CommitCount(words[1], _parse_number(words[2]))
            return count if format_mark(count).decode() == " ".join(words) else None
    return None


def describe_lost(path: Path, mark: CommitCount | None, count: CommitCount) -> str | None:
    """Return a warning if an index has fewer commits than the mark beside it, else None.

    The mark must have been read before the count.
    """
    if mark is None or mark.identity != count.identity or mark.number <= count.number:
        return None
    lost = mark.number - count.number
    return (
        f"{path} lacks the last {lost:,} of {mark.number:,} commits: its log was damaged or "
        "removed after its writer was killed, or an older copy was put in its place. Write again "
        f"what was written last: hybrid-search ingest FILE --index {path.stem}"
    )


def find_lost(path: Path, connection: sqlite3.Connection) -> str | None:
    """Return a warning if the open index at `path` lacks commits that were made, else None."""
    mark = read_mark(path.with_suffix(".lock"))
    return describe_lost(path, mark, read_count(connection))


def _parse_number(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else 0
