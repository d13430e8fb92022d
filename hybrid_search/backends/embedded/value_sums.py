"""Sums of what filters and facets read, kept for each value, show a changed row of the metadata.

For each value of a field the index stores how many rows have it, and a sum over the numbers of
their documents. A query compares both with the rows of the values that it reads. The sums are made
from the documents' metadata as JSON, which has checksums, and belong to the commit of `term_sums`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hybrid_search.backends.embedded import schema, term_sums
from hybrid_search.errors import DamagedIndexError
from hybrid_search.text.filters import leaves

_SCATTERED = "(document * 2654435761 % 2147483647)"
WEIGHT = f"{_SCATTERED} * {_SCATTERED} % 2147483647"
"""A hash of a document's number, in SQL; it has 31 bits, so that billions can be added."""


def add(
    connection: sqlite3.Connection, document: int, metadata: Mapping[str, Any], sign: int = 1
) -> None:
    """Add the values of a document's metadata to the sums; take them away if `sign` is -1."""
    connection.executemany(
        f"INSERT INTO value_sums SELECT ?1, ?2, ?4, ?4 * {WEIGHT} FROM (SELECT ?3 AS document) "
        "WHERE true ON CONFLICT DO UPDATE SET rows = rows + excluded.rows, "
        "total = total + excluded.total",
        [(name, value, document, sign) for name, _, value in leaves(metadata) if value is not None],
    )


def subtract(connection: sqlite3.Connection, document: int) -> None:
    """Take the values of a document that is still there out of the sums.

    If its metadata cannot be read the sums stay as they are, and tell of it.
    """
    query = "SELECT metadata FROM documents WHERE document = ?"
    (metadata,) = connection.execute(query, (document,)).fetchone()
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        add(connection, document, json.loads(metadata), sign=-1)


def make(connection: sqlite3.Connection) -> None:
    """Make the sums anew, from the metadata of all documents."""
    connection.execute("DELETE FROM value_sums")
    for document, metadata in connection.execute("SELECT document, metadata FROM documents"):
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            add(connection, document, json.loads(metadata))


def check(
    connection: sqlite3.Connection, test: str = "true", values: Sequence[object] = ()
) -> None:
    """Check the rows that an SQL expression on ``name`` and ``value`` selects; all without one.

    Raises:
        DamagedIndexError: If they are not those that were written.
    """
    with schema.read_transaction(connection):
        if term_sums.read_coverage(connection) is None:
            return
        actual = (
            f"SELECT name, value, count(*), sum({WEIGHT}) FROM metadata WHERE {test} "
            "GROUP BY name, value"
        )
        stored = f"SELECT name, value, rows, total FROM value_sums WHERE rows AND {test}"
        differences = f"SELECT * FROM ({actual} EXCEPT {stored}) UNION ALL " + (
            f"SELECT * FROM ({stored} EXCEPT {actual}) LIMIT 1"
        )
        if connection.execute(differences, [*values] * 4).fetchone():
            path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
            why = "the values of its metadata are not those that were written"
            raise DamagedIndexError(schema.describe_damage(path, why))
