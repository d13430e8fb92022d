"""Passage contents, fetched once per query for sorting, facets and hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import (
    Fault,
    Key,
    PassageContent,
    StoredPassage,
)
from hybrid_search.search.query import Query
from hybrid_search.search.span_content import parse_metadata
from hybrid_search.search.types import Group
from hybrid_search.text.filters import ID, Scalar, leaves


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of a query's passages by key; deleted and damaged passages are missing.

    `damaged` lists each damaged passage with its fault; these passages are not shown.
    """

    index: str
    by_key: Mapping[Key, PassageContent]
    damaged: Sequence[tuple[StoredPassage, Fault]] = ()
    _metadata: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def __contains__(self, key: Key) -> bool:
        return key in self.by_key

    def __getitem__(self, key: Key) -> PassageContent:
        return self.by_key[key]

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
