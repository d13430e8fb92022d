"""Hits in another order than by score, and how often each value of a field occurs; both over a set
that has a name.

``window``: the documents that were fused, at most `Query.window` passages of each leg. ``matches``:
all documents that fulfil `where` and in which a term of a phrase occurs, however many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import FACETS, Request
from hybrid_search.errors import UsageError
from hybrid_search.search.hit_builder import Group
from hybrid_search.text.filters import ID, Scalar, leaves


def check(sort: str | None, facets: Sequence[str], fields: Mapping[str, str]) -> None:
    """Raise UsageError for a field that the index does not have, or whose values cannot be put in
    order or counted.
    """
    usable = sorted(name for name, kind in fields.items() if kind != "object")
    requested = ([(sort.removeprefix("-"), sorted([ID, *usable]))] if sort else []) + [
        (name, usable) for name in facets
    ]  # ids are all different
    for name, allowed in requested:
        if name not in allowed:
            field_names = ", ".join(allowed) or "none"
            raise UsageError(
                f"cannot sort or count by {name!r}: the index has no such field. Its fields: {field_names}"
            )


def sort_groups(backend: Backend, index: str, groups: Sequence[Group], sort: str) -> list[Group]:
    """All `groups` of the window by a metadata field (``-field``: the largest first), those without
    it last, equal ones by score.
    """
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    values_by_group = _values(backend, index, groups, name)
    numbers_with_values = [number for number, values in enumerate(values_by_group) if values]
    pick = max if descending else min  # of several values, the one that a server sorts by too
    numbers_with_values.sort(
        key=lambda number: pick(values_by_group[number]), reverse=descending
    )  # which keeps equal ones in their order, also in reverse
    return [groups[number] for number in numbers_with_values] + [
        group for group, values in zip(groups, values_by_group, strict=True) if not values
    ]


def count_facets(
    backend: Backend,
    index: str,
    requests: Sequence[Request],
    groups: Sequence[Group],
    fields: Sequence[str],
    facets_over: str,
) -> dict[str, dict[Scalar, int]]:
    """How many documents have each value of each of `fields`, the most frequent first, over the
    window or over all matches.
    """
    if facets_over == "matches":
        if len(requests) > 1:
            raise UsageError(
                f"facets over matches are counted for one phrase, and there are {len(requests)}: ask for one, or for facets over the window"
            )
        return backend.count_facets(index, requests[0], fields)
    return {
        name: _count_most_frequent(_values(backend, index, _documents(groups), name))
        for name in fields
    }


def _documents(groups: Sequence[Group]) -> list[Group]:
    """One group a document, where there is one a passage."""
    return list({group[0].stored.document_id: group for group in groups}.values())


def _count_most_frequent(values_by_group: Sequence[set[Any]]) -> dict[Scalar, int]:
    counts = Counter(value for values in values_by_group for value in values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FACETS])


def _values(backend: Backend, index: str, groups: Sequence[Group], name: str) -> list[set[Any]]:
    """The values of a field in each group's document."""
    contents = backend.fetch_contents(index, [group[0].stored.key for group in groups])
    values_by_group = []
    for group in groups:
        content = contents.get(group[0].stored.key)
        metadata = leaves(json.loads(content.metadata)) if content else ()
        values: set[Any] = {
            value for path, _, value in metadata if path == name and value is not None
        }
        values_by_group.append({group[0].stored.document_id} if name == ID else values)
    return values_by_group
