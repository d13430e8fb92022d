"""Reads the word codes of a whole index page by page, in the order of the passages' numbers."""

from __future__ import annotations

import sqlite3

from hybrid_search.backends.embedded import schema
from hybrid_search.backends.embedded.checksums import is_changed
from hybrid_search.backends.types import DamagedRowError, ScannedPassage
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes

PAGE_PASSAGES = 256
"""Passages that are read at once: 6 MB of word codes."""


def read_page(connection: sqlite3.Connection, after: int) -> list[ScannedPassage]:
    """Return `PAGE_PASSAGES` passages with their codes, those whose numbers follow `after`.

    Raises:
        DamagedRowError: If an id or a number of a passage is damaged.
    """
    column, join = schema.CODES_CHECKSUM
    query = (
        f"SELECT passage, id, ordinal, start, data, {column} FROM passages "
        f"JOIN documents USING (document) LEFT JOIN tokens USING (passage) {join} "
        "WHERE passage > ? ORDER BY passage LIMIT ?"
    )
    rows = connection.execute(query, (after, PAGE_PASSAGES)).fetchall()
    for _, name, ordinal, start, _, _ in rows:
        if [type(value) for value in (name, ordinal, start)] != [str, int, int]:
            raise DamagedRowError(schema.index_name(connection), name)
    return [
        ScannedPassage(passage, name, ordinal, start, _read(data, checksum), passage)
        for passage, name, ordinal, start, data, checksum in rows
    ]


def _read(data: bytes, checksum: int | None) -> WordCodes:
    """Return the word codes of a passage, unreadable ones if they are not those written."""
    return word_codes.UNREADABLE if is_changed(data, checksum) else word_codes.read(data)
