"""The next version of an index (blue-green): written beside the old one, compared with it, and put in its place at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hybrid_search import covering
from hybrid_search.access import PATIENCE
from hybrid_search.backends.base import IndexInfo, IndexSpec, check_spec
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server import bodies, documents, indexes, walking
from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.patience import Patient
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.errors import IndexStoreError, ServerError, UsageError

PAGE = 200
"""Passages read at once: 7 MB of codes."""

Rehash = Callable[[str, IndexSpec], str]

_log = logging.getLogger(__name__)


class NextVersion:
    """A new index for `alias`, which nobody sees before it is published. As a place to write it stands for the index itself.

    It is made with the options of the old one, but for those given."""

    def __init__(self, server: Server, alias: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        covering.parse(spec.policy)
        self._server = server
        self.old = indexes.find(server, alias)
        if self.old.name == alias:
            raise UsageError(f"{alias!r} is itself a version: name the alias that stands for it")
        self._options = IndexOptions.parse({**indexes.options(server, self.old), **options})
        self.new = indexes.create(server, alias, spec, self._options, behind=False)

    def writer(self, index: str, spec: IndexSpec) -> ServerWriter:
        """Open the new index for writing. Raises ModelError for another spec than it was made for."""
        check_spec(index, self.new.spec, spec)
        return ServerWriter(self._server, self.new, self._options, published=False)

    def copy(self, rehash: Rehash, report: Callable[[int], None]) -> None:
        """Copy every passage, its codes as they are, its vectors made from them anew; `report` is told how many there are so far.

        Raises ModelError where the new index is for another model, IndexStoreError where the old one changed meanwhile or a passage was refused.
        """
        check_spec(self.old.alias, replace(self.old.spec, policy=self.new.spec.policy), self.new.spec)
        before = self._state(self.old)
        for done, outcome in enumerate(Patient(self._server, PATIENCE).sent(self._copies(rehash)), 1):
            if not outcome.taken:
                raise IndexStoreError(f"passage {outcome.action['_id']!r} was refused by the new index: {outcome.reason}. Nothing was changed")
            if done % PAGE == 0:
                report(done)
        after, there = self._state(self.old), self._state(self.new)
        if before != after or there[:2] != after[:2]:
            raise IndexStoreError(
                f"{self.old.name} had {before[:2]} documents and passages before and {after[:2]} after the copy, "
                f"the new index has {there[:2]}: somebody wrote meanwhile. Nothing was changed; stop the writers and run the same command again"
            )

    def check(self, documents_: int) -> None:
        """Raise IndexStoreError unless the new index has so many documents, each with all its passages."""
        there = self._described(self.new)
        promised = int(self._sum(self.new, "passages", {"term": {"ordinal": 0}}))
        if (there.documents, there.passages) != (documents_, promised):
            raise IndexStoreError(
                f"the new index has {there.documents} documents of {documents_} and {there.passages} passages of {promised}. "
                "Nothing was changed; run the same command again"
            )

    def publish(self, *, keep: bool) -> None:
        """Let the alias stand for the new index, and remove the old one unless it is to be kept."""
        indexes.swap(self._server, self.new, self.old)
        if not keep:
            indexes.delete(self._server, self.old.name)

    def discard(self) -> None:
        """Remove the new index, unless it was published after all. Where that fails a line is logged: what went wrong before is what counts."""
        try:
            if self.new.name not in indexes.stands_for(self._server, self.new.alias):
                indexes.delete(self._server, self.new.name)
        except ServerError as error:
            _log.warning("the unfinished version %s could not be removed, delete it: %s", self.new.name, error)

    def _copies(self, rehash: Rehash) -> Iterator[dict[str, Any]]:
        for hit in self._passages():
            source = hit["_source"]
            made = documents.derived(documents.codes(hit), source["start"], self.new.spec.policy)
            source |= {"source_hash": rehash(source["source_hash"], self.new.spec), **made}
            yield {"_op_type": "index", "_index": self.new.name, "_id": hit["_id"], "_source": documents.to_json(source).decode()}

    def _passages(self) -> Iterator[dict[str, Any]]:
        indexes.refresh(self._server, self.old.name)
        shown = {"_source": {"excludes": ["spans", "tokens"]}, "docvalue_fields": bodies.CODES["docvalue_fields"]}
        yield from walking.hits(self._server, self.old.name, shown, PAGE)

    def _described(self, made: indexes.Made) -> IndexInfo:
        indexes.refresh(self._server, made.name)
        return described(made, self._searched(made, COUNTS))

    def _state(self, made: indexes.Made) -> tuple[int, int, float]:
        """Documents, passages, and the sum of the passages' sequence numbers, which rises when one is written anew."""
        info = self._described(made)
        return info.documents, info.passages, self._sum(made, "_seq_no", {"match_all": {}})

    def _sum(self, made: indexes.Made, field: str, query: Mapping[str, Any]) -> float:
        found = self._searched(made, {"size": 0, "query": query, "aggs": {"sum": {"sum": {"field": field}}}})
        return float(found["aggregations"]["sum"]["value"])

    def _searched(self, made: indexes.Made, body: Mapping[str, Any]) -> dict[str, Any]:
        return indexes.search(self._server, made.name, body)


COUNTS = {
    "size": 0,
    "track_total_hits": True,
    "aggs": {"documents": {"filter": {"term": {"ordinal": 0}}}, "spans": {"sum": {"field": "span_count"}}},
}
"""Counts documents, passages and covering spans."""


def described(made: indexes.Made, found: Mapping[str, Any]) -> IndexInfo:
    """What an index holds, by the answer to `COUNTS`."""
    counted = found["aggregations"]
    return IndexInfo(made.spec, made.fields, counted["documents"]["doc_count"], found["hits"]["total"]["value"], int(counted["spans"]["value"]))
