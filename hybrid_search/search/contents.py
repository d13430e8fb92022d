"""Passage contents, fetched once per query, and what is made of metadata: order, groups and facets.

Sorting and grouping work on the ``window``, the documents of all pages, at most `Query.window`.
Facets count either the ``window`` or all ``matches``: every document that fulfils `where` and
contains a term of the phrase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import FACETS, Fault, Key, PassageContent, Request, StoredPassage
from hybrid_search.errors import UsageError, show_value
from hybrid_search.search.query import Query
from hybrid_search.search.span_content import parse_metadata
from hybrid_search.search.types import Group
from hybrid_search.text.filters import ID, Scalar, leaves
from hybrid_search.text.name_lists import describe_fields
from hybrid_search.text.values import select_comparable


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of a query's passages by key; deleted and damaged passages are missing.

    `damaged` lists each damaged passage with its fault; these passages are not shown.
    """

    index: str
    by_key: Mapping[Key, PassageContent]
    damaged: Sequence[tuple[StoredPassage, Fault]] = ()
    _metadata: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def parse_metadata(self, passage: StoredPassage) -> dict[str, Any]:
        """Return the metadata of a passage's document, parsed once; empty without the passage."""
        key = passage.key
        if key not in self._metadata:
            content = self.by_key.get(key)
            self._metadata[key] = (
                parse_metadata(self.index, passage.document_id, content) if content else {}
            )
        return self._metadata[key]

    def field_values(self, group: Group, name: str) -> set[Scalar]:
        """Return the values of a metadata field (or `id`) of a group's document."""
        best = group[0].stored
        if name == ID:
            return {best.document_id}
        metadata = leaves(self.parse_metadata(best))
        return {value for path, _, value in metadata if path == name and value is not None}


def fetch_contents(backend: Backend, query: Query, groups: Sequence[Group]) -> Contents:
    """Return all contents that `query` needs of its `groups`, with one backend call.

    Without `sort` the page is known beforehand. With `sort`, or groups by a field, the contents
    decide the page, so the passages of all groups are fetched: more bytes, but one round trip less.
    Facets over the window need one passage of each document.
    """
    page: Iterable[Group] = groups[query.page]
    if query.sort or query.group_field:
        page = groups
    passages = [passage.stored for group in page for passage in group]
    if query.facets and query.facets_over == "window":
        passages += [group[0].stored for group in one_group_by_document(groups)]
    stored = {passage.key: passage for passage in passages}
    contents = backend.fetch_contents(query.index, list(stored)) if stored else {}
    damaged = [(stored[key], item.fault) for key, item in contents.items() if item.fault]
    sound = {key: content for key, content in contents.items() if not content.fault}
    return Contents(query.index, sound, damaged)


def one_group_by_document(groups: Sequence[Group]) -> list[Group]:
    """Return one group per document, even if groups are single passages."""
    return list({group[0].stored.document_id: group for group in groups}.values())


def check_fields(query: Query, fields: Mapping[str, str]) -> None:
    """Raise UsageError if a field is missing from the index or has no plain values."""
    if query.sort:
        _check_field(query.sort.removeprefix("-"), {**fields, ID: "string"})
    groups = [query.group_field] if query.group_field else []
    for name in (*groups, *query.facets):  # id is not allowed: every value would be different
        _check_field(name, fields)


def _check_field(name: str, fields: Mapping[str, str]) -> None:
    if fields.get(name, "object") == "object":
        raise UsageError(
            f"cannot sort, group or count by {show_value(name)}: {describe_fields(fields, name)}"
        )


def sort_groups(
    groups: Sequence[Group], sort: str, contents: Contents, fields: Mapping[str, str]
) -> list[Group]:
    """Return all `groups` of the window sorted by a metadata field (``-field``: descending).

    Dates are sorted by time and numbers by size, even if they are stored as text. Groups without a
    value come last, and so does any other text in a field of dates or numbers. Ties keep the order
    by score. If a document has several values, the smallest counts, or in descending order the
    largest, as on servers.
    """
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    pick = max if descending else min
    kind = fields.get(name, "string")
    with_values, without_values = [], []
    for group in groups:
        if values := select_comparable(contents.field_values(group, name), kind):
            with_values.append((pick(values), group))
        else:
            without_values.append(group)
    # the sort is stable, even reversed: equal values stay in order of score
    with_values.sort(key=lambda pair: pair[0], reverse=descending)
    return [group for _, group in with_values] + without_values


def select_best(groups: Sequence[Group], name: str, contents: Contents) -> list[Group]:
    """Return the first group of each value of a metadata field, and all groups without the field.

    The values of a list count as one.
    """
    best: dict[Any, Group] = {}
    for group in groups:
        values = frozenset(contents.field_values(group, name))
        best.setdefault(values or group[0].stored.document_id, group)
    return list(best.values())


def count_facets(
    backend: Backend,
    query: Query,
    requests: Sequence[Request],
    groups: Sequence[Group],
    contents: Contents,
) -> dict[str, dict[Scalar, int]] | None:
    """Return the number of documents per value of the query's facets, None if it has none.

    The most frequent values come first. Facets over the window are counted from `contents`, facets
    over all matches by the backend.

    Raises:
        UsageError: If facets over all matches are requested for several phrases.
    """
    if not query.facets:
        return None
    if query.facets_over == "matches":
        if len(requests) > 1:
            raise UsageError(
                f"facets over matches work for one phrase, but there are {len(requests)}: "
                "give one, or use facets over the window"
            )
        return backend.count_facets(query.index, requests[0], query.facets)
    documents = one_group_by_document(groups)
    return {name: _count_values(documents, name, contents) for name in query.facets}


def _count_values(documents: Sequence[Group], name: str, contents: Contents) -> dict[Scalar, int]:
    counts: Counter[Scalar] = Counter()
    for document in documents:
        counts.update(contents.field_values(document, name))
    most_frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(most_frequent[:FACETS])
