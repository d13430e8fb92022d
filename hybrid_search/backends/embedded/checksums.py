"""Checksums of what an index stores of each passage, which show a byte that changed on the disk.

SQLite has none: a bit that flips in a row and leaves its form is not noticed. They are CRC-32s,
which show every change of up to three bits in a passage, and all but one in 4 billion others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.types import Fault

CHANGED_CONTENT = Fault(
    "text", "its text, its place, its turns or its metadata are not those that were written"
)
CHANGED_CODES = Fault("codes", "its word codes are not those that were written")


def compute_content_checksum(values: Iterable[str | int]) -> int:
    """Return the checksum of what is stored of a passage beside its word codes.

    Args:
        values: Id of the document, its metadata as JSON, number of the passage in it, start,
            layout, terms ("" in an index that holds none), and text.

    Returns:
        A number from 0 to 2**32 - 1.
    """
    checksum = 0
    for value in values:
        checksum = crc32(f"{value}\0".encode(), checksum)
    return checksum


CONTENT_TYPES = (str, str, int, int, str, str, str)
"""The types of what `compute_content_checksum` takes, in their order."""


def find_content_fault(*values: Any) -> Fault | None:
    """Return the fault of the content of a passage, None if it has none.

    The last of `values` is its checksum, None if its row is lost, which is a fault as any other;
    the others are what `compute_content_checksum` takes.
    """
    *content, checksum = values
    is_typed = all(map(isinstance, content, CONTENT_TYPES)) and content[3] >= 0
    if is_typed and checksum == compute_content_checksum(content):
        return None
    return CHANGED_CONTENT


def insert_checksums(
    connection: sqlite3.Connection, passage: int, content: int, data: bytes
) -> None:
    """Record the checksum of a passage's content, and that of `data`, its word codes."""
    connection.execute("INSERT INTO checksums VALUES (?, ?, ?)", (passage, content, crc32(data)))


def is_changed(data: object, checksum: int | None) -> bool:
    """Return whether word codes are not those of a checksum; False if there are no codes.

    The checksum is None if its row is lost.
    """
    return isinstance(data, bytes) and crc32(data) != checksum
