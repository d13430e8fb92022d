"""Writes the spans of an attached index into its sidecar, without a word of its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import heads, passage_codec, request_bodies, scan
from hybrid_search.backends.server.attachment import Attachment, describe_passage
from hybrid_search.backends.server.transport.bulk import Action, check_accepted
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.text.types import Entry

PAGE_CODES = 200
"""Passages in a page with word codes: 7 MB."""

COPIED_COLUMNS = [
    *("document_id", "ordinal", "passages", "source_hash"),
    *("start", "end", "text_hash"),
]
"""The fields of a passage that are copied as they stand."""


class AttachedWriter(ServerWriter):
    """Writes a sidecar, whose texts are where `attachment` says.

    `versions` has the version of each document that is written.
    """

    def __init__(
        self,
        server: Server,
        index: heads.ServerIndex,
        attachment: Attachment,
        options: IndexOptions,
        patience: float,
    ) -> None:
        super().__init__(server, index, options, patience=patience)
        self.attachment = attachment
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def build_source(self, entry: Entry, taken_at: str) -> dict[str, Any]:
        """Return what is stored of a passage: offsets and codes."""
        fields = describe_passage(entry)
        return self._complete(fields, self.versions[entry.document.id], taken_at, entry.tokens)

    def _complete(
        self, fields: Mapping[str, Any], version: str, taken_at: str, codes: Any
    ) -> dict[str, Any]:
        spec, graph = self._index.spec, self._index.graph
        derived = passage_codec.derive_fields(codes, fields["start"], spec.policy, None, graph)
        return {**fields, "source_version": version, "indexed_at": taken_at, **derived}

    def list_versions(self) -> dict[str, str]:
        """Return the version of each document that is completely in the sidecar, "" of others."""
        columns = ["document_id", "ordinal", "passages", "source_version"]
        body = {**request_bodies.KEYS, "docvalue_fields": columns}
        hits = scan.iterate_hits(self._server, self._index.name, body, scan.PAGE_PASSAGES)
        rows = (tuple(hit["fields"][name][0] for name in columns) for hit in hits)
        return {id_: _find_version(list(own)) for id_, own in groupby(rows, key=itemgetter(0))}

    def stamp(self, versions: Mapping[str, str]) -> None:
        """Record the versions of documents whose text has not changed."""
        for batch in request_bodies.split_batches(list(versions), PAGE_CODES):
            check_accepted(self._server.send_all(self._build_stamps(batch, versions)))
        self._refresh()

    def _build_stamps(self, ids: list[str], versions: Mapping[str, str]) -> Iterator[Action]:
        taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        body = {
            "query": {"terms": {"document_id": ids}},
            "_source": ["layout"],
            "docvalue_fields": [*COPIED_COLUMNS, "turn_speakers", "tokens"],
        }
        for hit in scan.iterate_hits(self._server, self._index.name, body, PAGE_CODES):
            turn_speakers = hit["fields"].get("turn_speakers", [])
            names = {value.partition(":")[2] for value in turn_speakers}
            fields = {
                **{name: hit["fields"][name][0] for name in COPIED_COLUMNS},
                "layout": hit["_source"]["layout"],
                "turn_speakers": turn_speakers,
                "speakers": sorted(filter(None, names)),
            }
            codes = passage_codec.decode_codes(hit)
            source = self._complete(fields, versions[fields["document_id"]], taken_at, codes)
            yield Action(self._index.name, hit["_id"], passage_codec.to_json(source))


def _find_version(rows: Sequence[tuple[str, int, int, str]]) -> str:
    """Return the version of a document with these passages, "" if they are not all of one."""
    versions = {version for _, _, _, version in rows}
    is_whole = len(versions) == 1 and len(rows) == rows[0][2]
    return versions.pop() if is_whole else ""
