"""Heads of indexes, remembered between queries, and the check that they still hold.

The first request of a query carries a probe: a search for any one passage. Its hit names the index
behind the alias, and its source hash ends with a digest of the model and policy that the index was
written with. If either differs from what is remembered, the index was replaced by any process, and
the head is read again. So no query is answered by the head of another index.

New metadata fields change neither: a query by a field which the remembered head lacks is repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid_search.backends.base import T
from hybrid_search.backends.server import heads, request_bodies
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
    **request_bodies.KEYS,
    "docvalue_fields": ["source_hash"],
}
"""Finds any one passage, with its source hash."""


class IndexChangedError(IndexStoreError):
    """The index was replaced by a different one while a query ran."""


class HeadCache:
    """The heads of the indexes on one server. Safe to use from several threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._entries: dict[str, tuple[heads.ServerIndex, float]] = {}  # with monotonic seconds
        self._equal_digests: dict[str, tuple[heads.ServerIndex, frozenset[str]]] = {}

    def answer(self, alias: str, answer: Callable[[Head], T]) -> T:
        """Return `answer` by the head of `alias`: a remembered one if it still holds.

        If the query fails by a remembered head, that is read again, and the query is repeated if it
        has changed.

        Raises:
            HybridSearchError: As raised by `answer` for the head as it is now.
        """
        for _ in range(TRIES):
            index, read_at = self._entries.get(alias, (None, 0.0))
            is_recalled = time.monotonic() - read_at <= REMEMBERED_SECONDS
            if index is None or not is_recalled:
                index, is_recalled = self.read(alias), False
            try:
                result = answer(index.head)
            except IndexChangedError:
                continue  # the new head has been read
            except HybridSearchError as error:
                if not (is_recalled and _may_be_outdated(error)):
                    raise
                if self.read(alias).head == index.head:
                    raise
            else:
                # another thread may have noticed a change that this one's check then did not see
                current = self.peek(alias)
                if current is not None and current.head == index.head:
                    return result
        return answer(self.read(alias).head)

    def read(self, alias: str) -> heads.ServerIndex:
        """Read the head of `alias` from the server, and remember it."""
        try:
            index = heads.find_index(self._server, alias)
        except IndexStoreError:
            self.forget(alias)
            raise
        self._entries[alias] = (index, time.monotonic())
        return index

    def peek(self, alias: str) -> heads.ServerIndex | None:
        """Return the remembered head of `alias` of any age, or None."""
        return self._entries.get(alias, (None,))[0]

    def find(self, alias: str) -> heads.ServerIndex:
        """Return the remembered head of `alias` of any age; read it if it is missing."""
        return self.peek(alias) or self.read(alias)

    def forget(self, alias: str) -> None:
        """Forget `alias`."""
        self._entries.pop(alias, None)

    def check(self, alias: str, hits: Sequence[Mapping[str, Any]]) -> None:
        """Compare the hits of a probe with the remembered head, and read it again if they differ.

        An empty index has no hits: then the head is always read again.

        Raises:
            IndexChangedError: If the head has changed since it was remembered.
        """
        remembered = self.peek(alias)
        if remembered is None:
            return
        accepted = self._list_digests(alias, remembered)
        probed = frozenset(map(_read_digest, hits))
        if {hit["_index"] for hit in hits} == {remembered.name} and probed <= accepted:
            return
        current = self.read(alias)
        if current.head != remembered.head:
            raise IndexChangedError(
                f"index {alias!r} was replaced while the query ran: run the query again"
            )
        # other digests are of other versions of this program, which cut texts otherwise
        self._equal_digests[alias] = (current, accepted | probed)

    def _list_digests(self, alias: str, index: heads.ServerIndex) -> frozenset[str]:
        """Return the digest of an index's settings, and those that were seen to be as good."""
        learned_for, digests = self._equal_digests.get(alias, (index, frozenset[str]()))
        own = frozenset([settings_digest(index.spec)])
        return own | digests if learned_for == index else own


def _read_digest(hit: Mapping[str, Any]) -> str:
    (source_hash,) = hit.get("fields", {}).get("source_hash", [""])
    return str(source_hash).partition(".")[2]


def _may_be_outdated(error: HybridSearchError) -> bool:
    """Return whether an outdated head can have caused `error`."""
    if isinstance(error, ServerError):
        return error.status in (400, 404)
    return isinstance(error, (UsageError, ModelError, IndexStoreError))
