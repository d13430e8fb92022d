"""Selection of documents by `where` without an index, by each document's own fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.text.filters import (
    EXISTS,
    ID,
    NOT_EQUAL,
    RANGES,
    Condition,
    Range,
    compile_criterion,
    leaves,
    list_alternatives,
    matches_condition,
    widen,
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

    def matches(name: str, criterion: Any) -> bool:
        conditions = _split_possible(name, criterion, kinds.get(name, ""))
        return all(
            any(matches_condition(condition, id, metadata) for condition in alternatives)
            != is_negated
            for alternatives, is_negated in conditions
        )

    return all(matches(name, criterion) for name, criterion in where.items())


def _split_possible(name: str, criterion: Any, kind: str) -> Iterator[tuple[list[Condition], bool]]:
    """Yield a criterion's alternative conditions that fit a type, and whether they are negated."""
    if not isinstance(criterion, Mapping):
        yield _list_possible(name, list_alternatives(criterion), kind), False
        return
    for comparison, value in criterion.items():
        if comparison == NOT_EQUAL:
            yield _list_possible(name, list_alternatives(value), kind), True
    bounds = {key: bound for key, bound in criterion.items() if key in RANGES}
    if bounds:
        yield _list_possible(name, [bounds], kind), False
    if EXISTS in criterion:
        yield [Condition(name, ranges=(Range(),))], not criterion[EXISTS]


def _list_possible(name: str, criteria: Sequence[Any], kind: str) -> list[Condition]:
    possible: list[Condition] = []
    for criterion in criteria:
        with suppress(UsageError):
            possible += compile_criterion(name, criterion, kind)
    return possible
