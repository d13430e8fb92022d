"""Filters as SQL, and the check of the metadata that they read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from hybrid_search.backends.embedded import schema, value_sums
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.text.filters import ID, RANGES, Condition, Range
from hybrid_search.text.values import Form


def build_where(conditions: Iterable[Condition]) -> tuple[str, list[object]]:
    """Return an SQL expression on ``document`` for `conditions`, and the values for it.

    Without conditions both are empty.
    """
    clauses: list[str] = []
    values: list[object] = []
    for condition in conditions:
        table = "documents" if condition.field == ID else "metadata"
        test, test_values = _build_test(condition)
        operator = "NOT IN" if condition.is_negated else "IN"
        clauses.append(f"document {operator} (SELECT document FROM {table} WHERE {test})")
        values += test_values
    return " AND ".join(clauses), values


def _build_test(condition: Condition) -> tuple[str, list[object]]:
    """Return an SQL expression on the rows of ids or metadata for a condition, and its values.

    They are the rows with such a value, also if the condition is that a document has none.
    """
    tests = [_build_range_test(condition.field, limits) for limits in condition.ranges]
    if condition.values or not tests:
        column, scope, names = _find_column(condition.field, "written")
        placeholders = ",".join("?" * len(condition.values))
        tests.append((f"{scope}{column} IN ({placeholders})", [*names, *condition.values]))
    test = " OR ".join(test for test, _ in tests)
    return f"({test})", [value for _, values in tests for value in values]


def _build_range_test(field: str, limits: Range) -> tuple[str, list[object]]:
    column, scope, names = _find_column(field, limits.form)
    tests = [f"{column} {RANGES[operator]} ?" for operator, _ in limits.bounds] or ["true"]
    return scope + " AND ".join(tests), [*names, *(bound for _, bound in limits.bounds)]


def _find_column(field: str, form: Form) -> tuple[str, str, list[object]]:
    """Return the column with the values of a field, the test of its rows, and values for that."""
    if field == ID:
        return "id", "", []
    return "value", "name = ? AND ", [value_sums.name_rows(field, form)]


def check_filters(
    connection: sqlite3.Connection, conditions: Sequence[Condition], count: int
) -> None:
    """Raise DamagedIndexError if what conditions read is not what was written.

    They leave `count` passages, by `read_allowed_passages` in the same transaction.
    """
    for condition in conditions:
        if condition.field == ID:
            _check_ids(connection, condition)
        else:
            value_sums.check_documents(connection, *_build_test(condition))
    _check_passages(connection, conditions, count)


def _check_ids(connection: sqlite3.Connection, condition: Condition) -> None:
    """Compare the documents that the index of ids finds with those whose row has such an id.

    The rows are read one by one only if not every id of a list is found.
    """
    test, values = _build_test(condition)
    rows = "SELECT group_concat(document) FROM (SELECT document FROM documents {} WHERE {})"
    with schema.read_transaction(connection):
        listed = read_numbers(connection, rows.format("", test), values)
        if condition.ranges or len(listed) < len(set(condition.values)):
            scope = test
        else:
            scope = f"document IN ({','.join(map(str, listed.tolist()))}) AND {test}"
        actual = read_numbers(connection, rows.format("NOT INDEXED", scope), values)
    if set(listed.tolist()) != set(actual.tolist()):
        schema.raise_damage(connection, "its list of ids is not that of its documents")


def _check_passages(
    connection: sqlite3.Connection, conditions: Sequence[Condition], count: int
) -> None:
    """Compare how many passages the documents of a filter have with how many they should."""
    clause, values = build_where(conditions)
    query = f"SELECT coalesce(sum(passages), 0) FROM documents WHERE {clause}"
    (expected,) = connection.execute(query, values).fetchone()
    if count != expected:
        schema.raise_damage(connection, "passages of its documents are missing")


def read_allowed_passages(
    connection: sqlite3.Connection, conditions: Sequence[Condition]
) -> Numbers:
    """Return the passages that all of `conditions` leave."""
    clause, values = build_where(conditions)
    query = f"SELECT group_concat(passage) FROM passages WHERE {clause}"
    return read_numbers(connection, query, values)


def read_passages_of_speakers(connection: sqlite3.Connection, speakers: Sequence[str]) -> Numbers:
    """Return the passages in which one of `speakers` speaks, by the layouts of all passages."""
    query = (
        "SELECT group_concat(passage) FROM passages WHERE json_valid(layout) AND EXISTS (SELECT 1 "
        "FROM json_each(layout) AS turn WHERE json_extract(turn.value, '$.speaker') "
        "IN (SELECT value FROM json_each(?)))"
    )
    return read_numbers(connection, query, [json.dumps(speakers)])
