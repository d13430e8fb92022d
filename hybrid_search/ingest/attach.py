"""Follows an index of another program: its new, changed and vanished documents into its sidecar.

A run compares the version of every document there with that in the sidecar. It keeps no state of
its own, so one that is killed is done again, and finishes what the first has left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.base import Backend
from hybrid_search.backends.server import answers
from hybrid_search.backends.server.attached_writer import AttachedWriter
from hybrid_search.backends.server.attachment import (
    Attachment,
    Version,
    check_template,
    find_value,
    parse_text_option,
)
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder import Encoder
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.sources.read_options import ReadOptions
from hybrid_search.ingest.sources.records import build_document, dump
from hybrid_search.ingest.sources.server_index import HIT_ID, iterate_hits
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text import window_policy
from hybrid_search.text.residual_codes import DEFAULT_BITS, check_bits

LISTED = 5000
"""Documents in a page of ids and versions."""

READ = 50
"""Documents in a page of texts, which may be long."""

TURN_KEYS = ("text", "speaker", "start_ms", "end_ms")
"""What is kept of a turn; the rest stays where it is."""


@dataclass(slots=True, eq=False)
class Follower:
    """Brings the sidecar of an attached index up to date, by a writer of it."""

    server: Server
    attachment: Attachment
    spec: IndexSpec
    sidecar: AttachedWriter
    _textless: set[str] = field(default_factory=set)
    _unchanged: dict[str, str] = field(default_factory=dict)

    def writer(self, index: str, spec: IndexSpec) -> AttachedWriter:
        """Return the writer of the sidecar, for `ingest`."""
        del index, spec
        return self.sidecar

    def sync(self, encoder: Encoder, options: IngestOptions) -> Summary:
        """Write what is new or has changed, remove what has vanished, and return the counts."""
        started_at = time.perf_counter()
        with self.sidecar:
            known = self.sidecar.list_versions()
            current = list_current(self.server, self.attachment)
            changed = [id_ for id_, version in current.items() if known.get(id_) != str(version)]
            summary = ingest(self._read_changed(changed), self, encoder, options)
            self.sidecar.stamp(self._unchanged)
            gone = [id_ for id_ in known if id_ not in current or id_ in self._textless]
            summary.deleted = self.sidecar.delete(gone) if gone else 0
        summary.read = len(current)
        summary.skipped = len(current) - len(changed) + len(self._unchanged)
        summary.seconds = time.perf_counter() - started_at
        return summary

    def _read_changed(self, ids: Sequence[str]) -> Iterator[SourceLine]:
        """Yield the documents of `ids` whose text has changed, and note the others."""
        number = 0
        for start in range(0, len(ids), READ):
            lines: dict[str, bytes] = {}
            for hit in self._fetch(ids[start : start + READ]):
                document = self._read_document(hit)
                if document is None:
                    self._textless.add(hit["_id"])
                else:
                    self.sidecar.versions[hit["_id"]] = str(Version.from_hit(hit))
                    lines[hit["_id"]] = dump(document)
            for id_ in self._find_unchanged(lines):
                self._unchanged[id_] = self.sidecar.versions.pop(id_)
            for id_, line in lines.items():
                number += 1
                if id_ not in self._unchanged:
                    yield SourceLine(self.attachment.index, number, line)

    def _fetch(self, ids: Sequence[str]) -> Iterable[Mapping[str, Any]]:
        """Return the documents of `ids` as they are now; of one in several indexes the last."""
        columns = self.attachment.columns
        body = {
            "query": {"ids": {"values": list(ids)}},
            "size": 2 * len(ids),
            "_source": [columns.get("turns") or columns["text"]],
            "seq_no_primary_term": True,
        }
        answer = self.server.request(
            "POST",
            f"/{quote(self.attachment.index)}/_search",
            body=body,
            read=answers.read_search(body),
        )
        hits = sorted(answer["hits"]["hits"], key=Version.from_hit)
        return {hit["_id"]: hit for hit in hits}.values()

    def _read_document(self, hit: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the document that is indexed: its id and text or turns; None without a text."""
        source = hit.get("_source", {})
        read = self.attachment.read_text(source)
        if read is not None and not read.text.strip():
            return None
        columns = dict(self.attachment.columns)
        if "turns" not in columns and isinstance(find_value(source, columns["text"]), list):
            columns = {"turns": columns.pop("text"), **columns}
        fields = {HIT_ID: hit["_id"], **source}
        try:
            document = build_document(fields, ReadOptions({"id": HIT_ID, **columns}))
        except InputError:
            return None
        if "turns" not in document:
            return {"id": document["id"], "text": document["text"]}
        turns = [
            {key: turn[key] for key in TURN_KEYS if key in turn} if isinstance(turn, dict) else turn
            for turn in document["turns"]
        ]
        return {"id": document["id"], "turns": turns}

    def _find_unchanged(self, lines: Mapping[str, bytes]) -> set[str]:
        """Return the ids of the documents that the sidecar has with this very text."""
        stored = self.sidecar.read_source_hashes(list(lines))
        unchanged = set()
        for id_, source_hash in stored.items():
            try:
                _, canonical = document_parser.parse(lines[id_])
            except InputError:  # it will be refused
                continue
            if document_parser.source_hash(canonical, self.spec) == source_hash:
                unchanged.add(id_)
        return unchanged


def list_current(server: Server, attachment: Attachment) -> dict[str, Version]:
    """Return the version of each document with a text; of an id in several indexes the last."""
    body = {
        "query": attachment.build_exists(),
        "sort": ["_doc"],
        "size": LISTED,
        "_source": False,
        "seq_no_primary_term": True,
    }
    versions: dict[str, Version] = {}
    with closing(iterate_hits(server, attachment.index, body)) as hits:
        for hit in hits:
            version = Version.from_hit(hit)
            versions[hit["_id"]] = max(version, versions.get(hit["_id"], version))
    return versions


def check_server(backend: Backend, index: str) -> ServerBackend:
    """Return the backend, if it is a server; else raise UsageError."""
    if not isinstance(backend, ServerBackend):
        raise UsageError(
            f"only an index on a server can be attached, and {index!r} is not on one: use --url "
            "opensearch+https://HOST, or ingest the documents"
        )
    return backend


def choose_attachment(
    backend: ServerBackend,
    index: str,
    text: str | None,
    columns: Mapping[str, str],
    template: Mapping[str, Any] | None,
) -> Attachment:
    """Return how an index is read and asked: as `text` says, or without it as its sidecar says.

    Raises:
        UsageError: If it is not attached, and there is no `text`.
    """
    if text is not None:
        check_template(template)
        return Attachment(index, parse_text_option(text, columns), template=template)
    attachment = backend.find_attachment(index)
    if attachment is None:
        raise UsageError(f"{index!r} has its own spans: only another program's index is attached")
    return attachment


def follow_index(
    backend: ServerBackend,
    attachment: Attachment,
    encoder: Encoder,
    earlier: IndexSpec | None,
    options: IngestOptions,
) -> Summary:
    """Bring the sidecar of an attached index up to date.

    Each document is there once afterwards, however often a run was killed before. The login must
    see every document: those that it does not see count as vanished. The sidecar keeps the policy
    and codes of its `earlier` spec.

    Returns:
        How many documents there are, and how many were encoded, skipped and deleted.
    """
    policy = options.policy or (earlier.policy if earlier else DEFAULT_POLICY)
    codes = options.codes or (earlier.codes if earlier else DEFAULT_BITS)
    window_policy.parse(policy)
    spec = IndexSpec.from_encoder(encoder.info, policy, check_bits(codes))
    sidecar = backend.attach(attachment, spec)
    follower = Follower(backend.server, sidecar.attachment, spec, sidecar)
    return follower.sync(encoder, replace(options, policy=policy, codes=codes))
