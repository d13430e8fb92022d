"""Where the centroids of an index are recorded: one row of a table of their own."""

from __future__ import annotations

import sqlite3

from hybrid_search.backends.embedded import schema
from hybrid_search.backends.embedded.centroids import Centroids


def read_identity(connection: sqlite3.Connection) -> int | None:
    """Return the identity of the centroids of an index as it is recorded, None if it has none."""
    row = connection.execute("SELECT identity FROM centroids").fetchone()
    return row[0] if row else None


def read(connection: sqlite3.Connection) -> Centroids | None:
    """Return the centroids of an index; None if it has none, or they are not those written."""
    # one statement, as a writer may replace the row meanwhile
    row = connection.execute("SELECT identity, passages, data FROM centroids").fetchone()
    if row is None:
        return None
    identity, passages, data = row
    try:
        centroids = Centroids.from_bytes(data, int(passages))
    except (TypeError, ValueError):  # an edited row of SQLite may hold any type
        return None
    return centroids if centroids.identity == identity else None


def store(connection: sqlite3.Connection, centroids: Centroids) -> None:
    """Record the centroids of an index in place of earlier ones."""
    row = (centroids.identity, centroids.passages, centroids.to_bytes())
    with schema.transaction(connection):
        connection.execute("DELETE FROM centroids")
        connection.execute("INSERT INTO centroids VALUES (?, ?, ?)", row)
