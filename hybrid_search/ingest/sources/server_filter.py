"""Translation of `where` into a filter query for a server's index.

The query may match too much, never too little; `hybrid_search.text.selection.matches_where` decides
about every document that it finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_search.text.filters import ID, list_alternatives
from hybrid_search.text.values import read_period

INTEGERS = ("long", "integer")
EVERYTHING: dict[str, Any] = {"match_all": {}}


def build_query(
    where: Mapping[str, Any], mappings: Sequence[Mapping[str, Any]], *, by_id: bool
) -> dict[str, Any]:
    """Return a query that finds everything that `where` selects in indexes with `mappings`.

    `by_id` means that a document's id is its ``_id``. The query only has conditions that a server
    evaluates exactly, on whole keywords, integers and booleans; it would tokenize, round or convert
    other values.
    """
    filters = [
        clause
        for name, value in sorted(where.items())
        if (clause := _build_filter(name, list_alternatives(value), mappings, by_id))
    ]
    return {"bool": {"filter": filters}} if filters else EVERYTHING


def _build_filter(
    name: str, values: Sequence[Any], mappings: Sequence[Mapping[str, Any]], by_id: bool
) -> dict[str, Any] | None:
    if any(isinstance(value, Mapping) for value in values):  # comparisons are evaluated here
        return None
    if name == ID:
        return {"ids": {"values": list(values)}} if by_id else None
    clauses = [
        _build_terms(name, values, _find_field(properties, name.split(".")))
        for properties in mappings
    ]
    return clauses[0] if clauses and all(clause == clauses[0] for clause in clauses) else None


def _find_field(properties: Mapping[str, Any], steps: Sequence[str]) -> Mapping[str, Any]:
    """Return the mapping of a field, empty if it is not mapped.

    Also empty for fields of ``nested`` objects, which need special queries.
    """
    field: Mapping[str, Any] = {"properties": properties}
    for step in steps:
        if field.get("type", "object") != "object":
            return {}
        field = field.get("properties", {}).get(step, {})
    return field


def _build_terms(
    name: str, values: Sequence[Any], field: Mapping[str, Any]
) -> dict[str, Any] | None:
    if not field.get("index", True):
        return None
    kind = field.get("type")
    if kind == "text":
        inner = field.get("fields", {}).get("keyword", {})
        return (
            _build_terms(f"{name}.keyword", values, inner)
            if inner.get("type") == "keyword"
            else None
        )
    if kind == "keyword" and all(
        _is_plain_keyword(value, field.get("ignore_above", 8191)) for value in values
    ):
        return {"terms": {name: list(values)}}
    if kind in INTEGERS and all(_is_integer(value) for value in values):
        return {"terms": {name: [int(value) for value in values]}}
    if kind == "boolean" and all(str(value).lower() in ("true", "false") for value in values):
        return {"terms": {name: [str(value).lower() == "true" for value in values]}}
    return None


def _is_plain_keyword(value: Any, longest: int) -> bool:
    """Return whether the server stores this value as exactly this keyword.

    Text that looks like a number or boolean may match 7.0 or true, and a date may be the same time
    in another notation.
    """
    if not isinstance(value, str) or len(value) > longest // 2:
        return False
    is_truth_value = value.lower() in ("true", "false")
    return not (is_truth_value or _is_number(value) or read_period(value))


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or not str(value).removeprefix("-").isdecimal():
        return False
    return abs(int(value)) < 2**31
