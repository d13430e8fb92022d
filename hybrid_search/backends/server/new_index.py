"""The writer of an index that does not exist yet: a run without documents creates none."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, mappings
from hybrid_search.backends.server.request_bodies import COUNTING
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument
from hybrid_search.errors import AccessError, IndexStoreError
from hybrid_search.text.types import Entry

HELD_NOTES = 10_000
"""Notes on rejected documents that wait for the index; of more, the latest. All are in the file."""


class NewIndexWriter:
    """Creates its index when the first passages come, and removes it if none was accepted.

    Raises UsageError if the server cannot have such an index.
    """

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

    def __enter__(self) -> Self:
        return self

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
        name = aliases.find_index(self._server, self._alias).name
        aliases.refresh(self._server, name)
        if not aliases.search(self._server, name, COUNTING)["hits"]["total"]["value"]:
            aliases.delete_index(self._server, name)
