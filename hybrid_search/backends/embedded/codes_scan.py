"""Reads the token codes of a whole index page by page, in the order of the passages' numbers."""

from __future__ import annotations

import sqlite3

from hybrid_search.backends.embedded import sql
from hybrid_search.backends.types import DamagedRowError, ScannedPassage
from hybrid_search.text import token_codes

PAGE_PASSAGES = 256
"""Passages that are read at once: 6 MB of token codes."""


def read_page(connection: sqlite3.Connection, after: int) -> list[ScannedPassage]:
    """Return `PAGE_PASSAGES` passages with their codes, those whose numbers follow `after`.

    Raises:
        DamagedRowError: If an id or a number of a passage is damaged.
    """
    query = (
        "SELECT passage, id, ordinal, start, data FROM passages "
        "JOIN documents USING (document) LEFT JOIN tokens USING (passage) "
        "WHERE passage > ? ORDER BY passage LIMIT ?"
    )
    rows = connection.execute(query, (after, PAGE_PASSAGES)).fetchall()
    for _, name, ordinal, start, _ in rows:
        if [type(value) for value in (name, ordinal, start)] != [str, int, int]:
            raise DamagedRowError(sql.index_name(connection), name)
    return [
        ScannedPassage(passage, name, ordinal, start, token_codes.read(data), passage)
        for passage, name, ordinal, start, data in rows
    ]
