"""Filters as SQL, and the check of the metadata that they read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from hybrid_search.backends.embedded import value_sums
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.text.filters import ID, RANGES, Condition


def build_where(conditions: Iterable[Condition]) -> tuple[str, list[object]]:
    """Return an SQL expression on ``document`` for `conditions`, and the values for it.

    Without conditions both are empty.
    """
    clauses: list[str] = []
    values: list[object] = []
    for condition in conditions:
        table = "documents" if condition.field == ID else "metadata"
        test, test_values = _build_test(condition)
        clauses.append(f"document IN (SELECT document FROM {table} WHERE {test})")
        values += test_values
    return " AND ".join(clauses), values


def _build_test(condition: Condition) -> tuple[str, list[object]]:
    """Return an SQL expression on the rows of ids or metadata for a condition, and its values."""
    column, scope, values = "id", "", list[object]()
    if condition.field != ID:
        column, scope, values = "value", "name = ? AND ", [condition.field]
    if condition.ranges:
        tests = [f"{column} {RANGES[operator]} ?" for operator, _ in condition.ranges]
        return scope + " AND ".join(tests), values + [bound for _, bound in condition.ranges]
    placeholders = ",".join("?" * len(condition.values))
    return f"{scope}{column} IN ({placeholders})", [*values, *condition.values]


def check_filters(connection: sqlite3.Connection, conditions: Iterable[Condition]) -> None:
    """Raise DamagedIndexError if the metadata that conditions read is not what was written."""
    for condition in conditions:
        if condition.field != ID:
            value_sums.check_documents(connection, *_build_test(condition))


def find_allowed_passages(
    connection: sqlite3.Connection, conditions: Sequence[Condition]
) -> Numbers | None:
    """Return the passages that the conditions leave, or None if there are no conditions."""
    if not conditions:
        return None
    clause, values = build_where(conditions)
    query = f"SELECT group_concat(passage) FROM passages WHERE {clause}"
    return read_numbers(connection, query, values)
