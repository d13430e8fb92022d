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
from itertools import zip_longest
from typing import Any

from hybrid_search.backends.embedded import schema, term_sums
from hybrid_search.text.filters import Scalar, read_typed_values
from hybrid_search.text.values import Form

_SCATTERED = "(document * 2654435761 % 2147483647)"
WEIGHT = f"{_SCATTERED} * {_SCATTERED} % 2147483647"
"""A hash of a document's number, in SQL; it has 31 bits, so that billions can be added."""


def name_rows(field: str, form: Form) -> str:
    """Return the name that a form of the values of a field has in the table of metadata.

    No field's own name begins with a dot.
    """
    return field if form == "written" else f".{form}.{field}"


def list_rows(metadata: Mapping[str, Any]) -> list[tuple[str, Scalar]]:
    """Return name and value of each row that filters find a document by."""
    return [(name_rows(name, form), value) for name, form, value in read_typed_values(metadata)]


def insert_metadata(
    connection: sqlite3.Connection, document: int, metadata: Mapping[str, Any]
) -> None:
    """Insert the rows that filters find a document by, and add them to the sums."""
    rows = [(document, name, value) for name, value in list_rows(metadata)]
    connection.executemany("INSERT INTO metadata VALUES (?, ?, ?)", rows)
    add(connection, document, metadata)


def add(
    connection: sqlite3.Connection, document: int, metadata: Mapping[str, Any], sign: int = 1
) -> None:
    """Add the values of a document's metadata to the sums; take them away if `sign` is -1."""
    connection.executemany(
        f"INSERT INTO value_sums SELECT ?1, ?2, ?4, ?4 * {WEIGHT} FROM (SELECT ?3 AS document) "
        "WHERE true ON CONFLICT DO UPDATE SET rows = rows + excluded.rows, "
        "total = total + excluded.total",
        [(name, value, document, sign) for name, value in list_rows(metadata)],
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


def check_documents(connection: sqlite3.Connection, test: str, values: Sequence[object]) -> None:
    """Raise DamagedIndexError if not those documents have values that pass a test as were written.

    `test` is an SQL expression on ``name`` and ``value``, with `values` in it.
    """
    actual = f"SELECT count(*), coalesce(sum({WEIGHT}), 0) FROM metadata WHERE {test}"
    stored = f"SELECT coalesce(sum(rows), 0), coalesce(sum(total), 0) FROM value_sums WHERE {test}"
    _compare(connection, actual, stored, values)


def check_values(
    connection: sqlite3.Connection, test: str = "true", values: Sequence[object] = ()
) -> None:
    """Raise DamagedIndexError if a value that passes a test is not of the documents that wrote it.

    `test` is an SQL expression on ``name`` and ``value``, with `values` in it; all are checked
    without one.
    """
    actual = (
        f"SELECT name, value, count(*), sum({WEIGHT}) FROM metadata WHERE {test} "
        "GROUP BY name, value ORDER BY name, value"
    )
    stored = f"SELECT * FROM value_sums WHERE rows AND {test} ORDER BY name, value"
    _compare(connection, actual, stored, values)


def _compare(
    connection: sqlite3.Connection, actual: str, stored: str, values: Sequence[object]
) -> None:
    with schema.read_transaction(connection):
        if term_sums.read_coverage(connection) is None:
            return
        rows = (connection.execute(query, values) for query in (actual, stored))
        if any(actual_row != stored_row for actual_row, stored_row in zip_longest(*rows)):
            why = "the values of its metadata are not those that were written"
            schema.raise_damage(connection, why)
