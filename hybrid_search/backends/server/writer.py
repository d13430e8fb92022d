"""Writes documents into one index of a server, which need not exist yet."""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from hybrid_search.backends.base import Writer
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import (
    aliases,
    heads,
    mappings,
    passage_codec,
    request_bodies,
    scan,
)
from hybrid_search.backends.server.document_buffer import DocumentBuffer
from hybrid_search.backends.server.transport.bulk import Action, Outcome, check_accepted
from hybrid_search.backends.server.transport.client import encode_json
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import AccessError, IndexStoreError, InputError, ServerError
from hybrid_search.text.filters import new_fields
from hybrid_search.text.types import Document, Entry

BATCH_IDS = 1000
"""Document ids in one request."""
PAGE_HITS = 10_000
"""The largest number of hits of one search that servers allow by default."""
MAX_UNREFRESHED = 10_000
"""The most documents written before the index is refreshed.

Only then does a further version of one find the passages that it replaces.
"""

NOTES_SECONDS = 10.0
"""Seconds for which notes on rejected documents are tried before they are given up."""

NESTED_LIMIT = "index.mapping.nested_objects.limit"
"""The setting of an index that limits the covering spans of a passage."""

HELD_NOTES = 10_000
"""Notes on rejected documents that wait for the index; of more, the latest. All are in the file."""

_log = logging.getLogger(__name__)


class ServerWriter(Writer):
    """Writes one index; several may at once, unless they write the same documents.

    `read_source_hashes` may be called from another thread than the rest. A server that accepts
    nothing is waited for, `patience` seconds. If an index that is `published` is no longer that of
    its alias, nobody would see the documents, and that is an error.
    """

    def __init__(
        self,
        server: Server,
        index: heads.ServerIndex,
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
        settings = heads.read_settings(self._server, index.name, NESTED_LIMIT)
        self._max_spans = settings[NESTED_LIMIT]

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed."""
        self._index.check_whole("write to")
        hashes: dict[str, str] = {}
        for batch in request_bodies.split_batches(ids, BATCH_IDS):
            body = _build_versions_body(batch)
            answer = aliases.search(self._server, self._index.name, body)
            for bucket in answer["aggregations"]["documents"]["buckets"]:
                versions = bucket["hashes"]["buckets"]
                are_whole = [item["doc_count"] == item["passages"]["value"] for item in versions]
                if are_whole == [True]:  # it has all passages of one version, and none of another
                    hashes[bucket["key"]] = versions[0]["key"]
        return hashes

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Return the documents that are refused; complete ones are sent, unfinished ones held."""
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
                if entry.spans > self._max_spans:
                    raise self._refuse_spans(entry)
                source = self.build_source(entry, self._buffer.taken_at)
                self._buffer.add(passage_codec.to_json(source))
        except InputError as error:
            self.abandon()
            return Refusal(entry.document, str(error), error.detail)
        return None

    def build_source(self, entry: Entry, taken_at: str) -> dict[str, Any]:
        """Return the server document of a passage; `taken_at` is the time in ISO 8601."""
        return passage_codec.build_source(entry, self._index.spec, taken_at, self._index.graph)

    def _refuse_spans(self, entry: Entry) -> InputError:
        return InputError(
            f"a passage has more covering spans than the {self._max_spans} nested objects that "
            f"index {self._index.name!r} allows: use a policy of fewer spans than "
            f"{self._index.spec.policy!r}, or raise {NESTED_LIMIT}",
            f"passage {entry.passage.ordinal} has {entry.spans}",
        )

    def abandon(self) -> None:
        """Forget the unfinished document; none of its passages was sent."""
        if self._buffer:
            self._buffer.close()
        self._buffer = None

    def _check_alias(self) -> None:
        """Raise IndexStoreError if the alias stands for another version by now."""
        if not self._published:
            return
        current_names = aliases.resolve_alias(self._server, self._index.alias)
        if self._index.name not in current_names:
            raise IndexStoreError(
                f"{self._index.alias!r} pointed to {self._index.name} at the start of "
                f"this run, and now points to {', '.join(sorted(current_names)) or 'none'}: "
                "it was reindexed or deleted meanwhile. Run the same command again"
            )

    def _send(self, buffers: Sequence[DocumentBuffer]) -> list[Refusal]:
        """Return the documents that the server refuses; none of them is left half written.

        All passages of a version are sent together; then those left from an older one are removed.
        """
        self._check_alias()
        leftover_ids = self._find_leftovers(buffers)
        refused: dict[str, Outcome] = {}
        accepted: set[str] = set()
        for outcome in self._server.send_all(self._build_actions(buffers)):
            document_id, _ = passage_codec.parse_passage_id(outcome.action.id)
            if outcome.is_accepted:
                accepted.add(document_id)
            else:
                refused.setdefault(document_id, outcome)
        half_written_ids = [
            passage_codec.passage_id(buffer.document.id, ordinal)
            for buffer in buffers
            if buffer.document.id in refused.keys() & accepted
            for ordinal in range(buffer.passages)
        ]
        untouched = refused.keys() - accepted  # their older versions are still whole
        outdated_ids = [
            id_ for id_ in leftover_ids if passage_codec.parse_passage_id(id_)[0] not in untouched
        ]
        self._remove([*half_written_ids, *outdated_ids])
        self._unrefreshed_ids |= {buffer.document.id for buffer in buffers}
        refusals = []
        for buffer in buffers:
            if refusal := refused.get(buffer.document.id):
                kind = refusal.kind or "it gave no type of error"
                why = f"the server refused it: {kind} ({refusal.status})"
                # the server's own words may quote the document
                refusals.append(Refusal(buffer.document, why, refusal.reason))
        return refusals

    def _build_actions(self, buffers: Iterable[DocumentBuffer]) -> Iterator[Action]:
        for buffer in buffers:
            for ordinal, source in enumerate(buffer):
                id_ = passage_codec.passage_id(buffer.document.id, ordinal)
                yield Action(self._index.name, id_, source)

    def _find_leftovers(self, buffers: Sequence[DocumentBuffer]) -> list[str]:
        """Return the passages that the index has beyond those of the new versions."""
        ids = {buffer.document.id for buffer in buffers}
        if len(self._unrefreshed_ids) > MAX_UNREFRESHED or ids & self._unrefreshed_ids:
            self._refresh()
        leftover_ids: list[str] = []
        for batch in request_bodies.split_batches(buffers, BATCH_IDS):
            tests = [
                [
                    {"term": {"document_id": buffer.document.id}},
                    {"range": {"ordinal": {"gte": buffer.passages}}},
                ]
                for buffer in batch
            ]
            queries = [{"bool": {"filter": test}} for test in tests]
            leftover_ids += self._find_passages({"bool": {"should": queries}})
        return leftover_ids

    def _find_passages(self, query: dict[str, Any]) -> list[str]:
        body = {"query": query, "_source": False}
        hits = scan.iterate_hits(self._server, self._index.name, body, PAGE_HITS)
        return [hit["_id"] for hit in hits]

    def _remove(self, ids: Iterable[str]) -> None:
        check_accepted(self._server.send_all(Action(self._index.name, id_) for id_ in ids))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        self._check_alias()
        self._refresh()
        passage_ids: list[str] = []
        for batch in request_bodies.split_batches(ids, BATCH_IDS):
            query = {"terms": {"document_id": batch}}
            passage_ids += self._find_passages(self._index.narrow(query))
        self._remove(passage_ids)
        self._refresh()
        return len({passage_codec.parse_passage_id(id_)[0] for id_ in passage_ids})

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Record rejected documents in the index ``NAME-rejected``; a failure is only logged."""
        server, name = self._notes_server, f"{self._index.alias}{aliases.REJECTED}"
        origin = {"index": self._index.alias, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        actions = []
        for document in rejected:
            given = {key: value for key, value in asdict(document).items() if value is not None}
            actions.append(Action(name, secrets.token_hex(10), encode_json({**origin, **given})))
        try:
            body = mappings.notes_body("rejected", server.engine, self._options)
            aliases.ensure_index(server, name, body)
            check_accepted(server.send_all(actions))
            aliases.refresh(server, name)
        except ServerError as error:
            _log.warning(
                "refused documents were not noted in %r (they are in the rejects file): %s",
                name,
                error,
            )

    def _refresh(self) -> None:
        aliases.refresh(self._server, self._index.name)
        self._unrefreshed_ids.clear()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.abandon()
        if kind is None:
            self._refresh()


class NewIndexWriter(Writer):
    """Creates its index when the first passages come, and removes it if none was accepted."""

    def __init__(
        self, server: Server, alias: str, spec: IndexSpec, options: IndexOptions, patience: float
    ) -> None:
        mappings.index_body(server.engine, spec, options, server.version)  # a test of the options
        self._server, self._alias, self._patience = server, alias, patience
        self._spec, self._options = spec, options
        self._writer: ServerWriter | None = None
        self._has_documents = False
        self._notes: deque[RejectedDocument] = deque(maxlen=HELD_NOTES)

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed."""
        return self._writer.read_source_hashes(ids) if self._writer else {}

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Write passages as `ServerWriter` does."""
        if not entries:
            return []
        if self._writer is None:
            index = aliases.open_or_create(self._server, self._alias, self._spec, self._options)
            self._writer = ServerWriter(self._server, index, self._options, patience=self._patience)
        refusals = self._writer.write(entries)
        refused = {id(refusal.document) for refusal in refusals}
        self._has_documents |= any(
            entry.is_last and id(entry.document) not in refused for entry in entries
        )
        return refusals

    def abandon(self) -> None:
        """Forget the unfinished document, if there is one."""
        if self._writer:
            self._writer.abandon()

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        return self._writer.delete(ids) if self._writer else 0

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Record rejected documents beside the index, once it has a document."""
        self._notes.extend(rejected)
        if self._writer and self._has_documents:
            self._writer.note(list(self._notes))
            self._notes.clear()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._writer is None:
            return
        self._writer.__exit__(kind, *error)
        if not self._has_documents:
            # not every login may delete; and what fails here is not why a failed run ends
            with suppress(AccessError if kind is None else IndexStoreError):
                self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        """Delete the index, unless another writer has documents in it."""
        name = heads.find_index(self._server, self._alias).name
        aliases.refresh(self._server, name)
        answer = aliases.search(self._server, name, request_bodies.COUNTING)
        if answer["hits"]["total"]["value"] == 0:
            aliases.delete_index(self._server, name)


def _batch_distinct(buffers: Iterable[DocumentBuffer]) -> Iterator[list[DocumentBuffer]]:
    """Yield batches of documents to be sent together: with one version of each."""
    batch: dict[str, DocumentBuffer] = {}
    for buffer in buffers:
        if buffer.document.id in batch:
            yield list(batch.values())
            batch = {}
        batch[buffer.document.id] = buffer
    if batch:
        yield list(batch.values())


def _build_versions_body(ids: list[str]) -> dict[str, Any]:
    """Return the search that counts the passages of each document by version."""
    hashes = {
        "terms": {"field": "source_hash", "size": 2},
        "aggs": {"passages": {"max": {"field": "passages"}}},
    }
    terms = {"field": "document_id", "size": len(ids)}
    return {
        "size": 0,
        "query": {"terms": {"document_id": ids}},
        "aggs": {"documents": {"terms": terms, "aggs": {"hashes": hashes}}},
    }


class FieldTypes:
    """The types of the fields of an index, and of the documents written since it was read.

    A document with another type is refused before it is sent, with the id of one to compare.
    """

    def __init__(self, server: Server, index: heads.ServerIndex) -> None:
        self._server, self._index_name = server, index.name
        self._fields = dict(index.fields)
        self._users: dict[str, str | None] = {}

    def learn(self, document: Document) -> None:
        """Record the fields of a document, unless one has another type: that is an InputError."""
        new = new_fields(self._fields, document.metadata, self._find_user)
        self._fields |= new
        self._users |= dict.fromkeys(new, document.id)

    def _find_user(self, name: str, _: str) -> str | None:
        """Return the id of a document that has the field, if any; the server is asked once."""
        if name not in self._users:
            query = {"exists": {"field": f"metadata.{name}"}}
            body = {"size": 1, "query": query, **request_bodies.KEYS}
            # a name with a star would stand for other fields too
            answer = None if "*" in name else aliases.search(self._server, self._index_name, body)
            hits = answer["hits"]["hits"] if answer else []
            self._users[name] = str(hits[0]["fields"]["document_id"][0]) if hits else None
        return self._users[name]
