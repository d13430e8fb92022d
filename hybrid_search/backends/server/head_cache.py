"""Heads of indexes, remembered between queries, and the check that they still hold.

The first request of a query carries a probe: a search for any one passage. Its hit names the index
behind the alias, and its source hash ends with a digest of the model and policy that the index was
written with. If either differs from what is remembered, the index was replaced (reindexed, or
deleted and created again, by any process), and the head is read again. So no query is answered by
the head of another index.

New metadata fields change neither: a query that uses a field which the remembered head lacks fails,
and is repeated with a new head.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybrid_search.backends.base import T
from hybrid_search.backends.server import aliases
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.settings_digest import settings_digest
from hybrid_search.backends.types import Head
from hybrid_search.errors import (
    HybridSearchError,
    IndexStoreError,
    ModelError,
    ServerError,
    UsageError,
)

TRIES = 3
"""Times that a query is run by a head that turns out to be outdated."""

REMEMBERED_SECONDS = 60.0
"""Seconds after which a head is read again all the same.

One change is invisible to the probe: an index that is deleted and created under the same name, by
the same model and policy, with other types of metadata fields.
"""

PROBE: dict[str, Any] = {
    "size": 1,
    "query": {"match_all": {}},
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["source_hash"],
    "track_total_hits": False,
}
"""Finds any one passage, with its source hash."""


class IndexChangedError(IndexStoreError):
    """The index was replaced by a different one while a query ran."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An index as it was read at `read_at` (monotonic seconds), and the digests of its passages."""

    index: aliases.ServerIndex
    read_at: float
    digests: frozenset[str]


class HeadCache:
    """The heads of the indexes on one server. Safe to use from several threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._entries: dict[str, _Entry] = {}

    def answer(self, alias: str, answer: Callable[[Head], T]) -> T:
        """Return `answer` by the head of `alias`: a remembered one if it still holds.

        If the query fails by a remembered head, for example because it filters by a field that
        another process has added, the head is read again, and the query is repeated if that has
        changed.

        Raises:
            HybridSearchError: As raised by `answer` for the head as it is now.
        """
        for _ in range(TRIES):
            recalled = self.recall(alias)
            index = recalled or self.read(alias)
            try:
                result = answer(index.head)
            except IndexChangedError:
                continue  # the new head has been read
            except HybridSearchError as error:
                if not (recalled and _may_be_outdated(error)):
                    raise
                if self.read(alias).head == index.head:
                    raise
            else:
                # another thread may have noticed a change that this one's check then did not see
                current = self.peek(alias)
                if current is not None and current.head == index.head:
                    return result
        return answer(self.read(alias).head)

    def read(self, alias: str) -> aliases.ServerIndex:
        """Read the head of `alias` from the server, and remember it."""
        try:
            index = aliases.find_index(self._server, alias)
        except IndexStoreError:
            self.forget(alias)
            raise
        digests = frozenset((settings_digest(index.spec),))
        self._entries[alias] = _Entry(index, time.monotonic(), digests)
        return index

    def recall(self, alias: str) -> aliases.ServerIndex | None:
        """Return the remembered head of `alias`; None if it is missing or too old."""
        entry = self._entries.get(alias)
        if entry is None or time.monotonic() - entry.read_at > REMEMBERED_SECONDS:
            return None
        return entry.index

    def peek(self, alias: str) -> aliases.ServerIndex | None:
        """Return the remembered head of `alias` of any age, or None."""
        entry = self._entries.get(alias)
        return entry.index if entry else None

    def find(self, alias: str) -> aliases.ServerIndex:
        """Return the remembered head of `alias` of any age; read it if it is missing."""
        return self.peek(alias) or self.read(alias)

    def forget(self, alias: str) -> None:
        """Forget `alias`."""
        self._entries.pop(alias, None)

    def check(self, alias: str, hits: Sequence[Mapping[str, Any]]) -> None:
        """Compare the hits of a probe with the remembered head, and read it again if they differ.

        An empty index has no hits: then the head is always read again. An unknown digest with an
        unchanged head comes from another version of this program; it is learned.

        Raises:
            IndexChangedError: If the head has changed since it was remembered.
        """
        entry = self._entries.get(alias)
        if entry is None or _is_from(entry, hits):
            return
        index = self.read(alias)
        if index.head != entry.index.head:
            raise IndexChangedError(
                f"index {alias!r} was replaced while the query ran: run the query again"
            )
        if index == entry.index and hits:
            self._learn(alias, entry.digests | set(map(_digest, hits)))

    def _learn(self, alias: str, digests: frozenset[str]) -> None:
        entry = self._entries.get(alias)
        if entry is not None:
            self._entries[alias] = replace(entry, digests=digests)


def _is_from(entry: _Entry, hits: Sequence[Mapping[str, Any]]) -> bool:
    names = {hit["_index"] for hit in hits}
    return names == {entry.index.name} and entry.digests.issuperset(map(_digest, hits))


def _digest(hit: Mapping[str, Any]) -> str:
    (source_hash,) = hit.get("fields", {}).get("source_hash", [""])
    return str(source_hash).partition(".")[2]


def _may_be_outdated(error: HybridSearchError) -> bool:
    """Return whether an outdated head can have caused `error`."""
    if isinstance(error, ServerError):
        return error.status in (400, 404)
    return isinstance(error, (UsageError, ModelError, IndexStoreError))
