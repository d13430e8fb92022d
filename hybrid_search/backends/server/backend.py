"""OpenSearch and Elasticsearch as a backend: they propose passages, which are scored here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.base import Backend, T, Writer
from hybrid_search.backends.index_options import DEFAULT_ANALYZER, IndexOptions
from hybrid_search.backends.server import (
    aliases,
    answers,
    heads,
    passage_codec,
    purge,
    request_bodies,
    scan,
)
from hybrid_search.backends.server.attached_search import AttachedSearch
from hybrid_search.backends.server.attached_writer import AttachedWriter
from hybrid_search.backends.server.attachment import Attachment
from hybrid_search.backends.server.head_cache import HeadCache
from hybrid_search.backends.server.leg_search import LegSearch
from hybrid_search.backends.server.next_version import NextVersion
from hybrid_search.backends.server.own_search import OwnSearch
from hybrid_search.backends.server.searcher import Searcher
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.writer import NewIndexWriter, ServerWriter
from hybrid_search.backends.types import (
    FoundPassages,
    Head,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    Request,
    ScannedPassage,
    StoredPassage,
    check_spec,
)
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import AccessError, IndexMissingError, UsageError
from hybrid_search.text.filters import Scalar

FORBIDDEN = 403
"""The status of a call that this login may not make, though it may make others."""

_log = logging.getLogger(__name__)


class ServerBackend(Backend):
    """Indexes on one cluster, created with `options`. Safe to use from several threads.

    A writer waits `patience` seconds for a server that is away.
    """

    has_query_language = True

    def __init__(self, server: Server, options: IndexOptions, patience: float = PATIENCE) -> None:
        self.server, self.options, self._patience = server, options, patience
        self._searcher = Searcher(server)
        self._heads = HeadCache(server)
        self._leg_search = LegSearch(server, self._searcher, self._heads)

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Return a writer of `index`, which its first document creates if it does not exist."""
        try:
            server_index = heads.find_index(self.server, index)
        except IndexMissingError:
            return NewIndexWriter(self.server, index, spec, self.options, self._patience)
        server_index.check_own("write to")
        check_spec(index, server_index.spec, spec)
        return ServerWriter(self.server, server_index, self.options, patience=self._patience)

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists; `options` override those of this backend.

        Raises:
            UsageError: If the index exists and has other `options`.
        """
        index_options = self.options.override(options)
        server_index = aliases.open_or_create(self.server, index, spec, index_options)
        current = heads.read_options(self.server, server_index) if options else {}
        for name, value in options.items():
            if current.get(name, value) != value:
                raise UsageError(
                    f"index {index!r} has {name} {current[name]!r}, but {value!r} was given: "
                    "leave it out, or make the next version by reindex"
                )

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> NextVersion:
        """Return a new index beside `index`, to be filled and published in its place."""
        heads.find_index(self.server, index).check_own("reindex")
        return NextVersion(self.server, index, spec, options)

    def attach(self, attachment: Attachment, spec: IndexSpec) -> AttachedWriter:
        """Return a writer of the sidecar of an index of another program; create it if missing.

        ModelError is raised if it was written with another model or policy, UsageError if it was
        made for other texts, or the index has no such text.
        """
        index, attachment = aliases.open_sidecar(self.server, attachment, spec, self.options)
        return AttachedWriter(self.server, index, attachment, self.options, self._patience)

    def find_attachment(self, index: str) -> Attachment | None:
        """Return how `index`, of another program, is read and asked; None if it is ours."""
        return heads.find_index(self.server, index).attachment

    def read_head(self, index: str) -> Head:
        """Return the spec of `index` and its metadata fields, read from the server."""
        return self._heads.read(index).head

    def answer_by_head(self, index: str, answer: Callable[[Head], T]) -> T:
        """Return the answer to a query by the head of `index`: a remembered one if it holds."""
        return self._heads.answer(index, answer)

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count its documents, passages and spans."""
        server_index = heads.find_index(self.server, index)
        counts = self._searcher.search(server_index.alias, request_bodies.COUNTS)
        size = self._measure_bytes(server_index.alias)
        return passage_codec.read_counts(counts, server_index.head, size)

    def _measure_bytes(self, index: str) -> int | None:
        """Return the bytes of an index without its replicas; None if this login may not ask."""
        path = f"/{quote(index)}/_stats/store"
        try:
            stats = self.server.request("GET", path, read=answers.STORED.read)
        except AccessError as error:
            if error.status != FORBIDDEN:
                raise
            _log.warning("the size of index %r is left out: %s", index, error)
            return None
        return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
        return heads.list_names(self.server)

    def iterate_passages(self, index: str, *, full: bool = False) -> Iterator[ListedPassage]:
        """Yield every passage that searches see."""
        server_index = heads.find_index(self.server, index)
        return scan.iterate_passages(self.server, server_index, full=full)

    def list_passages(self, index: str, document_id: str) -> list[Key]:
        """Return the passages of a document that searches see, in their order."""
        return self._open(index).list_passages(document_id)

    def scan_codes(
        self, index: str, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield every passage that searches see, with its word codes."""
        return self._open(index).scan_codes(after, written_since)

    def read_documents(
        self, index: str, ids: Sequence[str]
    ) -> dict[str, dict[Key, PassageContent]]:
        """Return the contents of the passages of documents, in order, as far as they exist."""
        return self._open(index).read_documents(ids)

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the best passages of both legs.

        IndexChangedError is raised if the index was replaced since its head was remembered.
        """
        return self._open(index).find(request)

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes."""
        return self._open(index).read_passages(request, keys)

    def find_quoting(self, index: str, quotation: str) -> dict[Key, str]:
        """Return the passages with the words of the quotation that the analyzer surely keeps.

        All passages, if the index has another analyzer than `DEFAULT_ANALYZER`.
        """
        server_index = heads.find_index(self.server, index)
        server_index.check_own("look for quotations in")
        query = scan.EVERYTHING
        if server_index.options.get("analyzer") == DEFAULT_ANALYZER:
            query = request_bodies.quotation_query(quotation)
        keys = scan.list_keys(self.server, server_index, query)
        return {key: passage_codec.parse_passage_id(key)[0] for key in keys}

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        return self._open(index).fetch_contents(keys)

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return the start and end of the matching words of each passage of `keys` that has any."""
        return self._open(index).find_highlights(request, keys)

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        return self._open(index).count_facets(request, fields)

    def build_request_bodies(
        self, index: str, request: Request
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return path and body of each request of the legs, as the server's Dev Tools take them."""
        searches = self._open(index).build_bodies(request)
        return [(f"/{quote(name)}/_search", body) for name, body in searches]

    def drop_index(self, index: str) -> None:
        """Remove `index`, everything in it, and its notes on rejected documents."""
        server_index = heads.find_index(self.server, index)
        if index != server_index.alias:
            server_index.check_own("delete")
        server_index.check_whole("delete")
        self._leg_search.forget(index)
        aliases.delete_index(self.server, server_index.name)
        aliases.delete_index(self.server, f"{index}{aliases.REJECTED}")

    def purge(self, index: str) -> None:
        """Merge `index` until nothing of deleted and replaced documents is left, and wait for it.

        UsageError is raised if `index` is an alias with a filter.
        """
        server_index = heads.find_index(self.server, index)
        server_index.check_whole("purge")
        server_index.check_own("purge")
        purge.purge(self.server.wait(self._patience), server_index.name, self._patience)

    def list_remains(self, index: str) -> list[str]:
        """Return what is left of deleted and replaced documents, in words."""
        return purge.list_remains(self.server, heads.find_index(self.server, index).name)

    def iterate_stored(self, index: str) -> Iterator[tuple[str, str]]:
        """Yield all fields of each passage but codes and vectors, with the id of its document."""
        return scan.iterate_stored(self.server, heads.find_index(self.server, index))

    def _open(self, index: str) -> OwnSearch | AttachedSearch:
        """Return the searches of an index: one of ours, or one of another program with spans."""
        head = self._heads.find(index)
        if head.attachment is None:
            return OwnSearch(self.server, self._searcher, self._leg_search, index)
        return AttachedSearch(
            self.server,
            self._searcher,
            self._leg_search,
            self._heads,
            index,
            head,
            head.attachment,
        )

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self.server.close()
