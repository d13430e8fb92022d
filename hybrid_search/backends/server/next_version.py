"""The next version of an index: written beside the old one, and put in its place in one step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hybrid_search.backends.base import IndexVersion, check_counts
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, heads, passage_codec, request_bodies, scan
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.backends.types import IndexSpec, check_spec
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import IndexStoreError, ServerError, UsageError
from hybrid_search.text import window_policy, word_codes

PAGE = 200
"""Passages in one page: 7 MB of word codes."""

_log = logging.getLogger(__name__)


class NextVersion(IndexVersion):
    """A new index for `alias`, with the options of the old one except for those given."""

    keeps_old = True

    def __init__(
        self, server: Server, alias: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> None:
        window_policy.parse(spec.policy)
        self._server = server
        self.old = heads.find_index(server, alias)
        if self.old.name == alias:
            raise UsageError(f"{alias!r} is itself a version: give the alias that points to it")
        self.old.check_whole("reindex")
        self._options = IndexOptions.parse({**heads.read_options(server, self.old), **options})
        self.new = aliases.create_version(server, alias, spec, self._options, behind_alias=False)

    def writer(self, index: str, spec: IndexSpec) -> ServerWriter:
        """Return a writer of the new index; raises ModelError if that is for another spec."""
        check_spec(index, self.new.spec, spec)
        return ServerWriter(self._server, self.new, self._options, published=False)

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy every passage with its word codes; the vectors are made from these anew.

        Raises ModelError if the new index is for another model.

        Raises:
            IndexStoreError: If the old one changed meanwhile, or a passage was refused.
        """
        old_spec = replace(self.old.spec, policy=self.new.spec.policy)
        check_spec(self.old.alias, old_spec, self.new.spec)
        before, versions_before = self._count(self.old), self._sum_versions(self.old)
        outcomes = self._server.wait(PATIENCE).send_all(self._build_actions(rehash))
        for copied, outcome in enumerate(outcomes, 1):
            if not outcome.is_accepted:
                raise IndexStoreError(
                    f"passage {outcome.action.id!r} was refused by the new index: "
                    f"{outcome.reason}. Nothing was changed"
                )
            if copied % PAGE == 0:
                report(copied)
        after, new = self._count(self.old), self._count(self.new)
        if not before == after == new or versions_before != self._sum_versions(self.old):
            raise IndexStoreError(
                f"{self.old.name} had {before} documents and passages before and {after} after the "
                f"copy, the new index has {new}: somebody wrote meanwhile. Nothing was changed; "
                "stop the writers and run the same command again"
            )

    def check(self, expected_documents: int) -> None:
        """Raise IndexStoreError unless the new index holds so many documents, which are whole."""
        documents, passages = self._count(self.new)
        expected_passages = int(self._sum_field(self.new, "passages", {"term": {"ordinal": 0}}))
        check_counts(documents, expected_documents, passages, expected_passages)

    def publish(self, *, keep: bool) -> None:
        """Make the alias stand for the new index, and delete the old one unless `keep` is set."""
        aliases.swap_alias(self._server, self.new, self.old)
        if not keep:
            aliases.delete_index(self._server, self.old.name)

    def discard(self) -> None:
        """Delete the new index, unless it was published after all; a failure is only logged."""
        try:
            if self.new.name not in aliases.resolve_alias(self._server, self.new.alias):
                aliases.delete_index(self._server, self.new.name)
        except ServerError as error:  # the error that led here matters more
            _log.warning(
                "the unfinished version %s could not be removed, delete it: %s",
                self.new.name,
                error,
            )

    def _build_actions(self, rehash: Callable[[str, IndexSpec], str]) -> Iterator[Action]:
        aliases.refresh(self._server, self.old.name)
        fields = {
            "_source": {"excludes": ["spans", "tokens"]},
            "docvalue_fields": request_bodies.CODES["docvalue_fields"],
        }
        spec = self.new.spec
        for hit in scan.iterate_hits(self._server, self.old.name, fields, PAGE):
            source, codes = hit["_source"], passage_codec.decode_codes(hit)
            if not word_codes.is_sound(codes, spec.dimension):
                raise IndexStoreError(
                    f"the word codes of passage {hit['_id']!r} are damaged or missing: "
                    f"hybrid-search verify --index {self.new.alias} --repair"
                )
            metadata, text = source.get("metadata", {}), source["text"]
            source |= {
                "source_hash": rehash(source["source_hash"], spec),
                **passage_codec.name_texts(metadata, text),
                **passage_codec.describe_metadata(metadata, source["layout"]),
                **passage_codec.derive_fields(
                    codes, source["start"], spec.policy, text, self.new.graph
                ),
            }
            yield Action(self.new.name, hit["_id"], passage_codec.to_json(source))

    def _count(self, index: heads.ServerIndex) -> tuple[int, int]:
        aliases.refresh(self._server, index.name)
        counts = aliases.search(self._server, index.name, request_bodies.COUNTS)
        info = passage_codec.read_counts(counts, index.head)
        return info.documents, info.passages

    def _sum_versions(self, index: heads.ServerIndex) -> float:
        """Return the sum of the passages' sequence numbers: it rises when one is written again."""
        return self._sum_field(index, "_seq_no", {"match_all": {}})

    def _sum_field(self, index: heads.ServerIndex, field: str, query: Mapping[str, Any]) -> float:
        body = {"size": 0, "query": query, "aggs": {"sum": {"sum": {"field": field}}}}
        response = aliases.search(self._server, index.name, body)
        return float(response["aggregations"]["sum"]["value"])
