"""Validation of `where`, the conditions on metadata, against the fields of an index.

``{"sector": "bank", "customer.tier": ["gold", "silver"], "date": {"gte": "2026-01-01"}}``: every
condition must hold; a list of values means any of them. A list in the metadata matches if one of
its elements does. The field ``id`` is the document's id. Dates and numbers are compared by value,
even if the metadata has them as text (`text.values`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from hybrid_search.errors import InputError, UsageError, show_value
from hybrid_search.text.name_lists import describe_fields, list_names
from hybrid_search.text.values import (
    CALL_DATES,
    FORMS,
    Form,
    parse_date,
    read_number,
    read_period,
    read_value,
)

Scalar = str | int | float | bool
RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
NOT_EQUAL, EXISTS = "ne", "exists"
ID = "id"
FindUser = Callable[[str, str], str | None]
"""Returns the id of a document that uses a field with this type, or None."""
REINDEX = ". If no document of the index has it so any more, reindex frees it"
INTEGER_LIMIT = 2**63
"""64-bit integers are less than this limit, and not less than its negative."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_TEXT_RANKS = {kind: rank for rank, kind in enumerate(FORMS)}


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds for a value: pairs of gt, gte, lt or lte and a bound.

    Without `bounds` any value matches. `form` says which form of the value is compared.
    """

    bounds: tuple[tuple[str, Scalar], ...] = ()
    form: Form = "written"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a field: it must have one of `values`, or a value within one of `ranges`.

    If `is_negated`, no value of the field may match.
    """

    field: str
    values: tuple[Scalar, ...] = ()
    ranges: tuple[Range, ...] = ()
    is_negated: bool = False


def compile_where(
    where: Mapping[str, Any] | None, fields: Mapping[str, str]
) -> tuple[Condition, ...]:
    """Return the conditions of `where`, ordered by field name.

    `fields` maps each field of the index to its type: string, numeric string, date, number, boolean
    or object. Raises UsageError if a field or value does not fit them.
    """
    all_fields = {**fields, ID: "string"}
    criteria = sorted(check_where(where).items())
    return tuple(
        condition
        for name, criterion in criteria
        for condition in compile_criterion(name, criterion, _find_kind(name, all_fields))
    )


def check_where(where: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return `where` ({} for None) after the checks that need no index.

    Raises:
        UsageError: If it is not a mapping, or a comparison is empty or unknown.
    """
    if where is not None and not isinstance(where, Mapping):
        raise UsageError(
            f"where is {show_value(where)}: give a mapping of fields to values, as in "
            "{'sector': 'bank'}"
        )
    for name, criterion in (where or {}).items():
        if not isinstance(name, str):
            raise UsageError(
                f"where has the field {show_value(name)}: the name of a field is a string"
            )
        if isinstance(criterion, Mapping):
            _check_comparisons(name, criterion)
    return where or {}


def _check_comparisons(name: str, comparisons: Mapping[str, Any]) -> None:
    allowed = (*RANGES, NOT_EQUAL, EXISTS)
    unknown = sorted(str(comparison) for comparison in comparisons if comparison not in allowed)
    if unknown or not comparisons:
        names = list_names(unknown) if unknown else "an empty range"
        raise UsageError(f"cannot filter {show_value(name)} by {names}: use {', '.join(allowed)}")
    exists = comparisons.get(EXISTS, True)
    if not isinstance(exists, bool):
        raise UsageError(
            f"cannot filter {show_value(name)} by exists {show_value(exists)}: give true or false"
        )


def matches_condition(condition: Condition, id: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether a document with this `id` and `metadata` fulfils `condition`."""
    values = [id] if condition.field == ID else list_values(metadata, condition.field)
    return any(_passes(value, condition) for value in values) != condition.is_negated


def list_values(metadata: Mapping[str, Any], field: str) -> list[Any]:
    """Return the values of a field, which may be below another one."""
    return [value for name, _, value in leaves(metadata) if name == field and value is not None]


def find_call_date(metadata: Mapping[str, Any]) -> date | None:
    """Return the day of a call: one of `CALL_DATES`, else the first date in its metadata.

    Raises the InputError of `leaves` for a value that no backend can store.
    """
    days: dict[str, date] = {}
    for name, _, value in leaves(metadata):
        day = parse_date(value)
        if day:
            days.setdefault(name, day)
    return next((days[name] for name in (*CALL_DATES, *days) if name in days), None)


def _passes(value: Any, condition: Condition) -> bool:
    return value in condition.values or any(_is_within(value, item) for item in condition.ranges)


def _is_within(value: Any, limits: Range) -> bool:
    if limits.form != "written":
        kind, value = read_value(value)
        if FORMS[kind] != limits.form:
            return False
    return all(_COMPARE[operation](value, bound) for operation, bound in limits.bounds)


def list_alternatives(criterion: Any) -> Sequence[Any]:
    """Return the allowed values of a field, as a list even for a single value."""
    is_list = isinstance(criterion, Sequence) and not isinstance(criterion, str)
    return criterion if is_list else [criterion]


def _find_kind(name: str, fields: Mapping[str, str]) -> str:
    """Return the type of a filterable field.

    Raises:
        UsageError: If there is no such field.
    """
    kind = fields.get(name, "object")
    if kind == "object":
        raise UsageError(f"cannot filter on {show_value(name)}: {describe_fields(fields, name)}")
    return kind


def compile_criterion(name: str, criterion: Any, kind: str) -> Iterator[Condition]:
    """Yield the conditions of one entry of `where` on a field of this type.

    Raises UsageError if the criterion does not fit the type.
    """
    if not isinstance(criterion, Mapping):
        yield _equal(name, criterion, kind)
        return
    bounds = sorted((key, bound) for key, bound in criterion.items() if key in RANGES)
    if bounds:
        yield Condition(name, ranges=(_build_range(name, bounds, kind),))
    if NOT_EQUAL in criterion:
        yield replace(_equal(name, criterion[NOT_EQUAL], kind), is_negated=True)
    if EXISTS in criterion:
        yield Condition(name, ranges=(Range(),), is_negated=not criterion[EXISTS])


def _equal(name: str, criterion: Any, kind: str) -> Condition:
    """Return the condition that a field has one of the values of `criterion`.

    A date given as text is compared as a date, so a day includes all its times; any other text is
    compared literally.
    """
    values: list[Scalar] = []
    ranges: list[Range] = []
    for value in map(_write_date, list_alternatives(criterion)):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        is_date = isinstance(value, str) and read_period(value) is not None
        if (kind == "date" and is_date) or (kind == "numeric string" and is_number):
            ranges.append(_build_range(name, [("gte", value), ("lte", value)], kind))
        else:
            values.append(_convert_value(name, value, kind))
    return Condition(name, tuple(values), tuple(ranges))


def _write_date(value: Any) -> Any:
    """Return a date or time as text, and anything else unchanged."""
    return value.isoformat() if isinstance(value, date) else value


def _build_range(name: str, bounds: Sequence[tuple[str, Any]], kind: str) -> Range:
    """Return the range between bounds, in the form in which a field of this type is compared."""
    form = FORMS.get(kind, "written")
    texts = [(key, _write_date(bound)) for key, bound in bounds]
    if form == "dates":
        return Range(tuple(_convert_time(name, key, bound) for key, bound in texts), form)
    value_kind = "number" if form == "numbers" else kind
    for _, bound in texts if kind == "string" and name != ID else ():
        _check_text_bound(name, bound)
    values = [(key, _convert_value(name, bound, value_kind)) for key, bound in texts]
    if form == "numbers":
        values = [(key, float(value)) for key, value in values]
    return Range(tuple(values), form)


def _convert_time(name: str, key: str, bound: Any) -> tuple[str, int]:
    """Return a bound in microseconds: for a day or month its start or end.

    Raises:
        UsageError: If it is not a date.
    """
    period = read_period(bound) if isinstance(bound, str) else None
    if period is None:
        raise UsageError(
            f"cannot compare the dates of {show_value(name)} with {show_value(bound)}: give a date "
            "or a time, as 2026-03-31 or 2026-03-31T10:00Z"
        )
    start, end = period
    return {"gte": ("gte", start), "gt": ("gte", end), "lt": ("lt", start), "lte": ("lt", end)}[key]


def _check_text_bound(name: str, bound: Any) -> None:
    """Raise UsageError for a date or number as the bound of a plain string field."""
    is_date = isinstance(bound, str) and read_period(bound) is not None
    if is_date or (isinstance(bound, str) and read_number(bound) is not None):
        raise UsageError(
            f"cannot compare {show_value(name)} with {show_value(bound)}: no document has a "
            f"{'date' if is_date else 'number'} there (a date is written as 2026-03-31)"
        )


def _convert_value(name: str, value: Any, kind: str) -> Scalar:
    """Return `value` as the field's type; text from a command line may be a number or boolean.

    Raises:
        UsageError: If the value does not have the field's type.
    """
    kind = "string" if kind in FORMS else kind
    if kind == "string" and isinstance(value, str) and not _has_surrogate(value):
        return value
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if kind == "boolean" and not is_integer and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind == "number" and not isinstance(value, bool):
        for convert in (_integer, float):
            try:
                if (number := convert(value)) == number:  # not NaN
                    return number
            except (TypeError, ValueError, OverflowError):
                continue
    raise UsageError(
        f"cannot filter {show_value(name)} by {show_value(value)}: the field is a {kind}, so give "
        f"a {kind}"
    )


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _integer(value: Any) -> int:
    """Return `value` as a 64-bit integer, without going through float, which would lose digits.

    Raises:
        OverflowError: If it does not fit into 64 bits.
    """
    number = int(value) if isinstance(value, str) else operator.index(value)
    if not -INTEGER_LIMIT <= number < INTEGER_LIMIT:
        raise OverflowError
    return number


def new_fields(
    existing_fields: Mapping[str, str],
    metadata: Mapping[str, Any],
    find_user: FindUser | None = None,
    *,
    can_free: bool = False,
) -> dict[str, str]:
    """Return the fields of `metadata`, with types, that are new to the index or change type.

    Args:
        existing_fields: The fields of the index.
        metadata: The metadata of a new document.
        find_user: Function that returns a document that uses a field as its type in the index.
        can_free: Whether the store can change the type of a field that no document uses.

    Raises:
        InputError: If a field has another type in the index, or two types in `metadata`. Servers
            refuse that as well.
    """
    new: dict[str, str] = {}
    for name, kind, _ in leaves(metadata):
        existing_kind = new.get(name) or existing_fields.get(name, kind)
        wider_kind = widen(existing_kind, kind)
        if wider_kind is None:
            user = find_user(name, existing_kind) if find_user and name not in new else ""
            if user is not None or not can_free:
                example = f", as in document {show_value(user)}" if user else ""
                remedy = "" if user or can_free else REINDEX
                raise InputError(
                    f"metadata field {show_value(name)} is a {kind} here and a {existing_kind} "
                    f"in the index{example}: give it one type, or another name{remedy}"
                )
        if name not in existing_fields or existing_kind != wider_kind:
            new[name] = wider_kind or kind
    return new


def widen(kind: str, other_kind: str) -> str | None:
    """Return a field type that can hold values of both types, or None."""
    if kind in _TEXT_RANKS and other_kind in _TEXT_RANKS:
        return max(kind, other_kind, key=_TEXT_RANKS.__getitem__)
    return kind if kind == other_kind else None


def read_typed_values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Form, Scalar]]:
    """Yield dotted name, form and value of everything in `metadata` that conditions compare.

    Text that holds a date or number is yielded twice: as written, and as its value.
    """
    for name, kind, value in leaves(metadata):
        if value is None:
            continue
        yield name, "written", value
        form = FORMS.get(kind, "written")
        if form != "written" and isinstance(value, str):
            yield name, form, read_value(value)[1]


def leaves(
    metadata: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, Scalar | None]]:
    """Yield dotted name, type and value of everything in `metadata`.

    A list yields each element; an object yields itself without a value, then its leaves. A key with
    a dot is read as a path into objects, as on servers. Raises InputError for a value that no
    backend can store.
    """
    for key, value in metadata.items():
        name = f"{prefix}{key}"
        yield from ((f"{prefix}{parent}", "object", None) for parent in _parents(name, key))
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, dict):
                yield name, "object", None
                yield from leaves(element, f"{name}.")
            elif element is not None:
                yield name, _kind(name, element), element


def _parents(name: str, key: str) -> Iterator[str]:
    """Return the names of the objects along a dotted key; raise InputError for an empty step."""
    steps = key.split(".")
    if not all(step.strip() for step in steps):
        raise InputError(
            f"metadata field {show_value(name)} has an empty name or an empty step between dots: "
            "servers cannot hold it. Give it another name"
        )
    return (".".join(steps[:number]) for number in range(1, len(steps)))


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise InputError(
            f"metadata field {show_value(name)} does not fit into an integer of 64 bits: "
            "give it as a string",
            f"it is {value}",
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(
            f"metadata field {show_value(name)} is infinite or not a number, which JSON cannot "
            "hold: give a finite number",
            f"it is {value}",
        )
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return read_value(value)[0]
    raise InputError(
        f"metadata field {show_value(name)} holds a list inside a list: "
        "give a list of plain values, or an object"
    )


def matches_where(where: Mapping[str, Any], id: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether a document fulfils `where`, judged by its own fields instead of an index's.

    A field that is missing from the document, or has another type, fulfils only ``ne`` and
    ``{"exists": False}``.
    """
    if not where:
        return True
    kinds = {ID: "string"}
    for name, kind, _ in leaves(metadata):
        kinds[name] = widen(kinds.get(name, kind), kind) or kind

    def has_any(name: str, criteria: Sequence[Any]) -> bool:
        for criterion in criteria:
            with suppress(UsageError):  # of another type
                conditions = compile_criterion(name, criterion, kinds.get(name, ""))
                if any(matches_condition(condition, id, metadata) for condition in conditions):
                    return True
        return False

    def matches(name: str, criterion: Any) -> bool:
        if not isinstance(criterion, Mapping):
            return has_any(name, list_alternatives(criterion))
        if NOT_EQUAL in criterion and has_any(name, list_alternatives(criterion[NOT_EQUAL])):
            return False
        bounds = {key: bound for key, bound in criterion.items() if key in RANGES}
        exists = {key: value for key, value in criterion.items() if key == EXISTS}
        return all(has_any(name, [part]) for part in (bounds, exists) if part)

    return all(matches(name, criterion) for name, criterion in where.items())
