"""`where`: conditions on metadata, checked against the fields that an index has before any backend
sees them.

``{"sector": "bank", "customer.tier": ["gold", "silver"], "date": {"gte": "2026-01-01"}}``: all must
hold; of a list, one; a list in the metadata matches if one of its elements does. ``id`` is the
document's id.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hybrid_search.errors import InputError, UsageError

Scalar = str | int | float | bool
RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
ID = "id"
INTEGER_LIMIT = 2**63
"""Integers of 64 bits are below it."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One field and what it must be: equal to one of `values`, or within `ranges` (pairs of gt,
    gte, lt, lte and a bound).
    """

    field: str
    values: tuple[Scalar, ...] = ()
    ranges: tuple[tuple[str, Scalar], ...] = ()


def compile_where(
    where: Mapping[str, Any] | None, fields: Mapping[str, str]
) -> tuple[Condition, ...]:
    """Conditions for `where`, given the index's `fields` (name -> string, number, boolean or
    object).

    Raises UsageError.
    """
    return tuple(
        _condition(name, criterion, {**fields, ID: "string"})
        for name, criterion in sorted(check_where(where).items())
    )


def check_where(where: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """`where`, if it is one whatever fields there are; empty for None. Raises UsageError."""
    if where is not None and not isinstance(where, Mapping):
        raise UsageError(
            f"where is {where!r}: give a mapping of fields to values, as in {{'sector': 'bank'}}"
        )
    for name, criterion in (where or {}).items():
        unknown = sorted(set(criterion) - set(RANGES)) if isinstance(criterion, Mapping) else []
        if unknown or (isinstance(criterion, Mapping) and not criterion):
            raise UsageError(
                f"cannot filter {name!r} by {', '.join(unknown) or 'an empty range'}: use {', '.join(RANGES)}"
            )
    return where or {}


def matches_condition(condition: Condition, id: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a document of this `id` and `metadata` fulfils `condition`."""
    values = (
        [id]
        if condition.field == ID
        else [
            value
            for name, _, value in leaves(metadata)
            if name == condition.field and value is not None
        ]
    )
    if condition.ranges:
        return any(
            all(_COMPARE[op](value, bound) for op, bound in condition.ranges) for value in values
        )
    return any(value in condition.values for value in values)


def matches_where(where: Mapping[str, Any], id: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a document fulfils `where` by itself, whatever fields others have: one that it does
    not have, or of another type, does not match.
    """
    if not where:
        return True
    fields = {**{name: kind for name, kind, _ in leaves(metadata)}, ID: "string"}
    return all(
        any(
            matches_condition(condition, id, metadata)
            for condition in _readable_conditions(name, criterion, fields)
        )
        for name, criterion in where.items()
    )


def _readable_conditions(
    name: str, criterion: Any, fields: Mapping[str, str]
) -> Iterator[Condition]:
    """A condition for each value wanted that the field can have."""
    for value in list_alternatives(criterion):
        with suppress(UsageError):
            yield _condition(name, value, fields)


def list_alternatives(criterion: Any) -> Sequence[Any]:
    """The alternatives that a field may have."""
    return (
        criterion
        if isinstance(criterion, Sequence) and not isinstance(criterion, str)
        else [criterion]
    )


def _condition(name: str, criterion: Any, fields: Mapping[str, str]) -> Condition:
    kind = fields.get(name)
    if kind is None or kind == "object":
        usable = ", ".join(sorted(field for field, type_ in fields.items() if type_ != "object"))
        raise UsageError(
            f"cannot filter on {name!r}: the index has no such field. Its fields: {usable}"
        )
    if not isinstance(criterion, Mapping):
        return Condition(
            name,
            values=tuple(
                _convert_value(name, value, kind) for value in list_alternatives(criterion)
            ),
        )
    return Condition(
        name,
        ranges=tuple(
            (op, _convert_value(name, bound, kind)) for op, bound in sorted(criterion.items())
        ),
    )


def _convert_value(name: str, value: Any, kind: str) -> Scalar:
    """`value` as the field's type; words from a command line are read as the number or boolean that
    they say.
    """
    if (
        kind == "string"
        and isinstance(value, str)
        and not any("\ud800" <= character <= "\udfff" for character in value)
    ):
        return value
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind == "number" and not isinstance(value, bool):
        for convert in (_integer, float):
            try:
                return convert(value)
            except (TypeError, ValueError, OverflowError):
                continue
    raise UsageError(
        f"cannot filter {name!r} by {value!r}: the field is a {kind}, and that is none"
    )


def _integer(value: Any) -> int:
    """`value` if it is an integer that a store may hold: a float would lose the last digits of a
    large one.
    """
    number = int(value) if isinstance(value, str) else operator.index(value)
    if not -INTEGER_LIMIT <= number < INTEGER_LIMIT:
        raise OverflowError
    return number


def new_fields(existing_fields: Mapping[str, str], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Names and types of the fields of `metadata` that an index with the fields `held` does not
    have yet.

    Raises InputError where one has another type there, or two types here: servers refuse that too.
    """
    new: dict[str, str] = {}
    for name, kind, _ in leaves(metadata):
        existing_kind = existing_fields.get(name) or new.setdefault(name, kind)
        if existing_kind != kind:
            raise InputError(
                f"metadata field {name!r} is a {kind} here and a {existing_kind} in the index: give it one type, or another name"
            )
    return new


def leaves(
    metadata: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, Scalar | None]]:
    """Dotted name, type and value of everything in `metadata`.

    Lists give each element; objects give themselves, then their leaves.

    A key with a dot in it is the path to a value inside objects, as servers read it. Raises
    InputError for what no backend can hold.
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
    """The objects that a dotted key leads through."""
    steps = key.split(".")
    if not all(step.strip() for step in steps):
        raise InputError(
            f"metadata field {name!r} has an empty name or an empty step between dots: servers cannot hold it. Give it another name"
        )
    return (".".join(steps[:number]) for number in range(1, len(steps)))


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise InputError(
            f"metadata field {name!r} is {value}: integers have 64 bits. Give it as a string"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(
            f"metadata field {name!r} is {value}: no JSON can say that. Give a finite number"
        )
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    raise InputError(
        f"metadata field {name!r} holds a list inside a list: give a list of plain values, or an object"
    )
