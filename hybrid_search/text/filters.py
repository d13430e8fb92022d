"""Check `where`, the conditions on metadata, against an index's fields before a backend sees it.

``{"sector": "bank", "customer.tier": ["gold", "silver"], "date": {"gte": "2026-01-01"}}``: every
condition must hold; a list of values holds if one of them does. A list in the metadata matches if
one of its elements does. The field ``id`` is the document's id.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hybrid_search.errors import InputError, UsageError, show_value
from hybrid_search.text.name_lists import list_names

Scalar = str | int | float | bool
RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
ID = "id"
FindUser = Callable[[str, str], str | None]
"""Returns the id of a document that uses a field of this name as this type, None if none does."""
REINDEX = ". If no document of the index has it so any more, reindex frees it"
INTEGER_LIMIT = 2**63
"""Integers of 64 bits lie below this limit, and not below its negative."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A field that must equal one of `values`, or lie within all `ranges`.

    A range is a pair of gt, gte, lt or lte and a bound.
    """

    field: str
    values: tuple[Scalar, ...] = ()
    ranges: tuple[tuple[str, Scalar], ...] = ()


def compile_where(
    where: Mapping[str, Any] | None, fields: Mapping[str, str]
) -> tuple[Condition, ...]:
    """Return the conditions of `where`, in the order of their names.

    `fields` are those of the index: name -> string, number, boolean or object. Raises UsageError
    if a field or value does not fit them.
    """
    all_fields = {**fields, ID: "string"}
    criteria = sorted(check_where(where).items())
    return tuple(_condition(name, criterion, all_fields) for name, criterion in criteria)


def check_where(where: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return `where`, empty for None, after the checks that need no index.

    Raises:
        UsageError: If it is not a mapping, or a range is empty or has an unknown bound.
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
        if not isinstance(criterion, Mapping):
            continue
        unknown = sorted(str(bound) for bound in criterion if bound not in RANGES)
        if unknown or not criterion:
            bounds = ", ".join(unknown) or "an empty range"
            raise UsageError(f"cannot filter {name!r} by {bounds}: use {', '.join(RANGES)}")
    return where or {}


def matches_condition(condition: Condition, id: str, metadata: Mapping[str, Any]) -> bool:
    """Return True if a document of this `id` and `metadata` fulfils `condition`."""
    values = [id] if condition.field == ID else _field_values(metadata, condition.field)
    if condition.ranges:
        return any(_is_within(value, condition) for value in values)
    return any(value in condition.values for value in values)


def _field_values(metadata: Mapping[str, Any], field: str) -> list[Any]:
    return [value for name, _, value in leaves(metadata) if name == field and value is not None]


def _is_within(value: Any, condition: Condition) -> bool:
    return all(_COMPARE[operation](value, bound) for operation, bound in condition.ranges)


def matches_where(where: Mapping[str, Any], id: str, metadata: Mapping[str, Any]) -> bool:
    """Return True if a document fulfils `where`, judged by its own fields and not an index's.

    A field that the document does not have, or has with another type, does not match.
    """
    if not where:
        return True
    fields = {**{name: kind for name, kind, _ in leaves(metadata)}, ID: "string"}

    def matches(name: str, criterion: Any) -> bool:
        conditions = _possible_conditions(name, criterion, fields)
        return any(matches_condition(condition, id, metadata) for condition in conditions)

    return all(matches(name, criterion) for name, criterion in where.items())


def _possible_conditions(
    name: str, criterion: Any, fields: Mapping[str, str]
) -> Iterator[Condition]:
    """Yield a condition for each alternative that has the field's type."""
    for value in list_alternatives(criterion):
        with suppress(UsageError):
            yield _condition(name, value, fields)


def list_alternatives(criterion: Any) -> Sequence[Any]:
    """Return the values of which a field must have one, as a list even for a single value."""
    is_list = isinstance(criterion, Sequence) and not isinstance(criterion, str)
    return criterion if is_list else [criterion]


def _condition(name: str, criterion: Any, fields: Mapping[str, str]) -> Condition:
    kind = fields.get(name)
    if kind is None or kind == "object":
        usable = sorted(field for field, type_ in fields.items() if type_ != "object")
        raise UsageError(
            f"cannot filter on {name!r}: the index has no such field. "
            f"Its fields: {list_names(usable, name)}"
        )
    if not isinstance(criterion, Mapping):
        alternatives = list_alternatives(criterion)
        return Condition(
            name, values=tuple(_convert_value(name, value, kind) for value in alternatives)
        )
    bounds = sorted(criterion.items())
    return Condition(
        name,
        ranges=tuple((operation, _convert_value(name, bound, kind)) for operation, bound in bounds),
    )


def _convert_value(name: str, value: Any, kind: str) -> Scalar:
    """Return `value` as the field's type; text from a command line is read as number or boolean.

    Raises:
        UsageError: If the value does not have the field's type.
    """
    if kind == "string" and isinstance(value, str) and not _has_surrogate(value):
        return value
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if kind == "boolean" and not is_integer and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind == "number" and not isinstance(value, bool):
        for convert in (_integer, float):
            try:
                return convert(value)
            except (TypeError, ValueError, OverflowError):
                continue
    raise UsageError(
        f"cannot filter {name!r} by {show_value(value)}: the field is a {kind}, so give a {kind}"
    )


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _integer(value: Any) -> int:
    """Return `value` as an integer of 64 bits; as a float a large one would lose digits.

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
    """Return name and type of each field of `metadata` that the index has not, or not so.

    Args:
        existing_fields: The fields of the index.
        metadata: The metadata of a document.
        find_user: Returns a document that uses a field as its type in the index.
        can_free: Whether the store can change the type of a field. It is free then if no document
            uses it.

    Raises:
        InputError: If a field has another type in the index, or two types here. Servers refuse
            that as well.
    """
    new: dict[str, str] = {}
    for name, kind, _ in leaves(metadata):
        existing_kind = new.get(name) or existing_fields.get(name, kind)
        if existing_kind != kind:
            user = find_user(name, existing_kind) if find_user and name not in new else ""
            if user is not None or not can_free:
                example = f", as in document {user!r}" if user else ""
                remedy = "" if user or can_free else REINDEX
                raise InputError(
                    f"metadata field {name!r} is a {kind} here and a {existing_kind} in the index"
                    f"{example}: give it one type, or another name{remedy}"
                )
        if name not in existing_fields or existing_kind != kind:
            new[name] = kind
    return new


def leaves(
    metadata: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, Scalar | None]]:
    """Yield dotted name, type and value of everything in `metadata`.

    A list yields each element; an object yields itself without a value, then its leaves. A key with
    a dot in it is read as a path into objects, as servers do. Raises InputError for a value that no
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
    """Return the names of the objects that a dotted key leads through. Raises InputError."""
    steps = key.split(".")
    if not all(step.strip() for step in steps):
        raise InputError(
            f"metadata field {name!r} has an empty name or an empty step between dots: "
            "servers cannot hold it. Give it another name"
        )
    return (".".join(steps[:number]) for number in range(1, len(steps)))


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise InputError(
            f"metadata field {name!r} does not fit into an integer of 64 bits: give it as a string",
            f"it is {value}",
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(
            f"metadata field {name!r} is infinite or not a number, which JSON cannot hold: "
            "give a finite number",
            f"it is {value}",
        )
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    raise InputError(
        f"metadata field {name!r} holds a list inside a list: "
        "give a list of plain values, or an object"
    )
