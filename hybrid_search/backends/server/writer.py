"""Writes documents into one index of a server.

All passages of a version are sent together; then passages left from an older version are removed.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import (
    aliases,
    answers,
    mappings,
    passage_codec,
    scan,
)
from hybrid_search.backends.server.document_buffer import DocumentBuffer
from hybrid_search.backends.server.field_types import FieldTypes
from hybrid_search.backends.server.transport.bulk import Outcome
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import Refusal, RejectedDocument
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import IndexStoreError, InputError, ServerError
from hybrid_search.text.types import Document, Entry

BATCH_IDS = 1000
"""Document ids in one request."""
PAGE_HITS = 10_000
"""The largest number of hits of one search that servers allow by default."""
MAX_UNREFRESHED = 10_000
"""The largest number of documents written before the index is refreshed.

A further version of one of them then finds the passages that it replaces.
"""

NOTES_SECONDS = 10.0
"""Seconds for which notes on rejected documents are tried before they are given up."""

NESTED_LIMIT = "index.mapping.nested_objects.limit"
"""The setting of an index that limits the covering spans of a passage."""
_READ_NESTED_LIMIT = answers.settings_reader(NESTED_LIMIT)

_log = logging.getLogger(__name__)


class ServerWriter:
    """Writes one index.

    Several writers may work at once if they do not write the same documents. `read_source_hashes`
    may be called from another thread than the rest.

    It waits for a server that accepts nothing for up to `patience` seconds. `published` says that
    the alias points to this index: if it no longer does, nobody would see the documents, and that
    is an error.
    """

    def __init__(
        self,
        server: Server,
        index: aliases.ServerIndex,
        options: IndexOptions,
        *,
        patience: float = PATIENCE,
        published: bool = True,
    ) -> None:
        self._server = server.wait(patience)
        self._notes_server = server.wait(NOTES_SECONDS)
        self._index, self._options, self._published = index, options, published
        self._field_types = FieldTypes(self._server, index)
        self._buffer: DocumentBuffer | None = None
        self._unrefreshed_ids: set[str] = set()
        aliases.refresh(self._server, index.name)
        self._max_spans = self._fetch_nested_limit()

    def _fetch_nested_limit(self) -> int:
        settings: dict[str, int] = self._server.request(
            "GET",
            f"/{quote(self._index.name)}/_settings/{NESTED_LIMIT}",
            params={"include_defaults": True, "flat_settings": True},
            read=_READ_NESTED_LIMIT,
        )
        return settings[NESTED_LIMIT]

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed.

        A document counts if it was complete when the writer was opened or has been seen so since.
        """
        self._index.check_whole("write to")
        hashes: dict[str, str] = {}
        for start in range(0, len(ids), BATCH_IDS):
            body = _build_versions_body(ids[start : start + BATCH_IDS])
            answer = aliases.search(self._server, self._index.name, body)
            buckets = answer["aggregations"]["documents"]["buckets"]
            hashes |= {
                bucket["key"]: bucket["hashes"]["buckets"][0]["key"]
                for bucket in buckets
                if _is_complete(bucket)
            }
        return hashes

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Return the documents that are refused; complete ones are sent.

        The passages of an unfinished document are held. Raises ServerError if the server accepts no
        more.
        """
        self._index.check_whole("write to")
        refusals: list[Refusal] = []
        buffers: list[DocumentBuffer] = []
        for entry in entries:
            refusal = self._take(entry)
            if refusal:
                refusals.append(refusal)
            elif entry.is_last and self._buffer:
                buffers.append(self._buffer)
                self._buffer = None
        try:
            for batch in _batch_distinct(buffers):
                refusals += self._send(batch)
        finally:
            for buffer in buffers:
                buffer.close()
        return refusals

    def _take(self, entry: Entry) -> Refusal | None:
        """Return why the document cannot be indexed; None if it can, or was refused before."""
        try:
            if entry.passage.ordinal == 0:
                self.abandon()
                self._field_types.learn(entry.document)
                self._buffer = DocumentBuffer(entry.document, entry.passages)
            if self._buffer:
                self._check(entry)
                self._buffer.add(
                    passage_codec.to_json(
                        passage_codec.build_source(
                            entry, self._index.spec, self._buffer.taken_at, self._index.graph
                        )
                    )
                )
        except InputError as error:
            self.abandon()
            return Refusal(entry.document, str(error), error.detail)
        return None

    def abandon(self) -> None:
        """Forget the unfinished document; none of its passages was sent."""
        if self._buffer:
            self._buffer.close()
        self._buffer = None

    def _check_alias(self) -> None:
        """Raise IndexStoreError if the alias stands for another version by now."""
        current_names = (
            aliases.resolve_alias(self._server, self._index.alias)
            if self._published
            else {self._index.name}
        )
        if self._index.name not in current_names:
            raise IndexStoreError(
                f"{self._index.alias!r} pointed to {self._index.name} at the start of "
                f"this run, and now points to {', '.join(sorted(current_names)) or 'none'}: "
                "it was reindexed or deleted meanwhile. Run the same command again"
            )

    def _check(self, entry: Entry) -> None:
        if entry.spans > self._max_spans:
            raise InputError(
                f"a passage has more covering spans than the {self._max_spans} nested objects "
                f"that index {self._index.name!r} allows: "
                f"use a policy of fewer spans than {self._index.spec.policy!r}, or raise "
                "index.mapping.nested_objects.limit",
                f"passage {entry.passage.ordinal} has {entry.spans}",
            )

    def _send(self, buffers: Sequence[DocumentBuffer]) -> list[Refusal]:
        """Return the documents of `buffers` that the server refuses; the others are written.

        What older versions had more is removed, and none of the documents is left half written.
        """
        self._check_alias()
        leftovers = self._find_leftovers(buffers)
        refused: dict[str, Outcome] = {}
        accepted_counts: Counter[str] = Counter()
        for outcome in self._server.send_all(self._actions(buffers)):
            document_id = passage_codec.parse_passage_id(str(outcome.action["_id"]))[0]
            if outcome.is_accepted:
                accepted_counts[document_id] += 1
            else:
                refused.setdefault(document_id, outcome)
        partial_buffers = [
            buffer
            for buffer in buffers
            if buffer.document.id in refused and accepted_counts[buffer.document.id]
        ]
        # the older versions of these are still whole
        untouched_ids = set(refused) - {buffer.document.id for buffer in partial_buffers}
        partial_passages = [
            (buffer.document.id, ordinal)
            for buffer in partial_buffers
            for ordinal in range(buffer.passages)
        ]
        self._remove(
            [
                *partial_passages,
                *(passage for passage in leftovers if passage[0] not in untouched_ids),
            ]
        )
        self._unrefreshed_ids |= {buffer.document.id for buffer in buffers}
        return [
            _build_refusal(buffer.document, refused[buffer.document.id])
            for buffer in buffers
            if buffer.document.id in refused
        ]

    def _actions(self, buffers: Iterable[DocumentBuffer]) -> Iterator[dict[str, Any]]:
        for buffer in buffers:
            for ordinal, source in enumerate(buffer):
                id_ = passage_codec.passage_id(buffer.document.id, ordinal)
                yield {
                    "_op_type": "index",
                    "_index": self._index.name,
                    "_id": id_,
                    "_source": source.decode(),
                }

    def _find_leftovers(self, buffers: Sequence[DocumentBuffer]) -> list[tuple[str, int]]:
        """Return the passages that the index has beyond those of the new versions."""
        if len(self._unrefreshed_ids) > MAX_UNREFRESHED or any(
            buffer.document.id in self._unrefreshed_ids for buffer in buffers
        ):
            self._refresh()
        leftover_queries = [
            {
                "bool": {
                    "filter": [
                        {"term": {"document_id": buffer.document.id}},
                        {"range": {"ordinal": {"gte": buffer.passages}}},
                    ]
                }
            }
            for buffer in buffers
        ]
        return [
            passage
            for start in range(0, len(leftover_queries), BATCH_IDS)
            for passage in self._find_passages(
                {"bool": {"should": leftover_queries[start : start + BATCH_IDS]}}
            )
        ]

    def _find_passages(self, query: dict[str, Any]) -> list[tuple[str, int]]:
        """Return document id and ordinal of every passage that matches `query`."""
        hits = scan.iterate_hits(
            self._server,
            self._index.name,
            {"query": query, "_source": False},
            PAGE_HITS,
        )
        return [passage_codec.parse_passage_id(hit["_id"]) for hit in hits]

    def _remove(self, passages: Iterable[tuple[str, int]]) -> None:
        actions = (
            {
                "_op_type": "delete",
                "_index": self._index.name,
                "_id": passage_codec.passage_id(*passage),
            }
            for passage in passages
        )
        _check_accepted(self._server.send_all(actions))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        self._check_alias()
        self._refresh()
        passages: list[tuple[str, int]] = []
        for start in range(0, len(ids), BATCH_IDS):
            query = {"terms": {"document_id": list(ids[start : start + BATCH_IDS])}}
            passages += self._find_passages(self._index.narrow(query))
        self._remove(passages)
        self._refresh()
        return len({document_id for document_id, _ in passages})

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Record rejected documents in the index ``NAME-rejected``, for dashboards.

        A failure is only logged, since the rejects file has them too.
        """
        name = f"{self._index.alias}{aliases.REJECTED}"
        noted_at = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            aliases.ensure_index(
                self._notes_server,
                name,
                mappings.notes_body("rejected", self._server.engine, self._options),
            )
            notes = [
                {
                    "index": self._index.alias,
                    "at": noted_at,
                    **{key: value for key, value in asdict(document).items() if value is not None},
                }
                for document in rejected
            ]
            actions = [
                {"_op_type": "index", "_index": name, "_id": secrets.token_hex(10), "_source": note}
                for note in notes
            ]
            _check_accepted(self._notes_server.send_all(actions))
            aliases.refresh(self._notes_server, name)
        except ServerError as error:
            _log.warning(
                "refused documents were not noted in %r (they are in the rejects file): %s",
                name,
                error,
            )

    def _refresh(self) -> None:
        aliases.refresh(self._server, self._index.name)
        self._unrefreshed_ids.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abandon()
        if kind is None:
            self._refresh()


def _batch_distinct(buffers: Iterable[DocumentBuffer]) -> Iterator[list[DocumentBuffer]]:
    """Yield batches of documents that may be sent together.

    A second version of a document waits until the first is written.
    """
    batch: dict[str, DocumentBuffer] = {}
    for buffer in buffers:
        if buffer.document.id in batch:
            yield list(batch.values())
            batch = {}
        batch[buffer.document.id] = buffer
    if batch:
        yield list(batch.values())


def _build_refusal(document: Document, outcome: Outcome) -> Refusal:
    """Return the refusal of a document; the server's own words may quote it."""
    kind = outcome.kind or "it gave no type of error"
    return Refusal(document, f"the server refused it: {kind} ({outcome.status})", outcome.reason)


def _check_accepted(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if not outcome.is_accepted:
            raise ServerError(
                f"the server refused to {outcome.action['_op_type']} "
                f"{outcome.action['_id']!r}: {outcome.reason}",
                outcome.status,
            )


def _build_versions_body(ids: Sequence[str]) -> dict[str, Any]:
    """Return the search that counts the passages of each document by version."""
    hashes = {
        "terms": {"field": "source_hash", "size": 2},
        "aggs": {"passages": {"max": {"field": "passages"}}},
    }
    document_terms = {
        "terms": {"field": "document_id", "size": len(ids)},
        "aggs": {"hashes": hashes},
    }
    return {
        "size": 0,
        "query": {"terms": {"document_id": list(ids)}},
        "aggs": {"documents": document_terms},
    }


def _is_complete(bucket: dict[str, Any]) -> bool:
    """Return whether a document has all passages of one version, and none of another."""
    versions = bucket["hashes"]["buckets"]
    if len(versions) != 1:
        return False
    return bool(versions[0]["doc_count"] == versions[0]["passages"]["value"])
