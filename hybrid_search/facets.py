"""Hits in another order than by score, and how often each value of a field occurs; both over a set that has a name.

``window``: the documents that were fused, at most `Query.window` passages of each leg. ``matches``: all documents that fulfil `where` and in which a
term of a phrase occurs, however many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_search.backends.base import FACETS, Backend, Request
from hybrid_search.errors import UsageError
from hybrid_search.filters import ID, Scalar, leaves
from hybrid_search.hits import Group


def check(sort: str | None, facets: Sequence[str], fields: Mapping[str, str]) -> None:
    """Raise UsageError for a field that the index does not have, or whose values cannot be put in order or counted."""
    usable = sorted(name for name, kind in fields.items() if kind != "object")
    asked = ([(sort.removeprefix("-"), sorted([ID, *usable]))] if sort else []) + [(name, usable) for name in facets]  # ids are all different
    for name, allowed in asked:
        if name not in allowed:
            there = ", ".join(allowed) or "none"
            raise UsageError(f"cannot sort or count by {name!r}: the index has no such field. Its fields: {there}")


def ordered(backend: Backend, index: str, groups: Sequence[Group], sort: str) -> list[Group]:
    """All `groups` of the window by a metadata field (``-field``: the largest first), those without it last, equal ones by score."""
    name, down = sort.removeprefix("-"), sort.startswith("-")
    held = _values(backend, index, groups, name)
    having = [number for number, values in enumerate(held) if values]
    pick = max if down else min  # of several values, the one that a server sorts by too
    having.sort(key=lambda number: pick(held[number]), reverse=down)  # which keeps equal ones in their order, also in reverse
    return [groups[number] for number in having] + [group for group, values in zip(groups, held, strict=True) if not values]


def counted(
    backend: Backend, index: str, requests: Sequence[Request], groups: Sequence[Group], fields: Sequence[str], over: str
) -> dict[str, dict[Scalar, int]]:
    """How many documents have each value of each of `fields`, the most frequent first, over the window or over all matches."""
    if over == "matches":
        if len(requests) > 1:
            raise UsageError(
                f"facets over matches are counted for one phrase, and there are {len(requests)}: ask for one, or for facets over the window"
            )
        return backend.facets(index, requests[0], fields)
    return {name: _most(_values(backend, index, _documents(groups), name)) for name in fields}


def _documents(groups: Sequence[Group]) -> list[Group]:
    """One group a document, where there is one a passage."""
    return list({group[0].stored.document_id: group for group in groups}.values())


def _most(held: Sequence[set[Any]]) -> dict[Scalar, int]:
    counts = Counter(value for values in held for value in values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FACETS])


def _values(backend: Backend, index: str, groups: Sequence[Group], name: str) -> list[set[Any]]:
    """The values of a field in each group's document."""
    contents = backend.contents(index, [group[0].stored.key for group in groups])
    found = []
    for group in groups:
        content = contents.get(group[0].stored.key)
        metadata = leaves(json.loads(content.metadata)) if content else ()
        values: set[Any] = {value for path, _, value in metadata if path == name and value is not None}
        found.append({group[0].stored.document_id} if name == ID else values)
    return found
