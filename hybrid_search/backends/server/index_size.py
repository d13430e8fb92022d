"""The sizes of the indexes on a server, counted before the first query and then remembered."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.server import aliases, answers
from hybrid_search.backends.server.searcher import Searcher
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexInfo
from hybrid_search.errors import AccessError

_log = logging.getLogger(__name__)

FORBIDDEN = 403
"""The status of a call that this login may not make, though it may make others."""

REMEMBERED_SECONDS = 600.0
"""Seconds for which a size is remembered: it only says how far to search."""

COUNTING = {"size": 0, "track_total_hits": True}
COUNTS = {
    **COUNTING,
    "aggs": {
        "documents": {"filter": {"term": {"ordinal": 0}}},
        "spans": {"sum": {"field": "span_count"}},
        "written_at": {"max": {"field": "indexed_at"}},
    },
}
"""A search that counts documents, passages and covering spans, and tells the last of their times.
"""


@dataclass(frozen=True, slots=True)
class IndexSize:
    """The numbers of passages and shards of an index."""

    passages: int
    shards: int


class SizeCache:
    """The sizes of the indexes on one server. Safe to use from several threads."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._entries: dict[str, tuple[IndexSize, float]] = {}  # with monotonic seconds

    def find(self, index: str) -> IndexSize:
        """Return the remembered size of `index`; count its passages if it is missing or too old.

        Raises IndexMissingError if there is no such index.
        """
        size, counted_at = self._entries.get(index, (None, 0.0))
        if size is None or time.monotonic() - counted_at > REMEMBERED_SECONDS:
            size = self._count(index)
            self._entries[index] = (size, time.monotonic())
        return size

    def forget(self, index: str) -> None:
        """Forget `index`."""
        self._entries.pop(index, None)

    def _count(self, index: str) -> IndexSize:
        answer = self._searcher.search(index, COUNTING)
        return IndexSize(answer["hits"]["total"]["value"], answer["_shards"]["total"])


def describe_index(server: Server, searcher: Searcher, index: str) -> IndexInfo:
    """Return the spec and fields of `index`, and how much is in it."""
    server_index = aliases.find_index(server, index)
    counts = searcher.search(index, COUNTS)
    return parse_counts(server_index, counts, _measure_bytes(server, index))


def parse_counts(
    index: aliases.ServerIndex, answer: Mapping[str, Any], size: int | None = None
) -> IndexInfo:
    """Return how much is in an index of a `size` in bytes, from the answer to `COUNTS`."""
    counts = answer["aggregations"]
    milliseconds = counts["written_at"]["value"]
    return IndexInfo(
        index.spec,
        index.fields,
        counts["documents"]["doc_count"],
        answer["hits"]["total"]["value"],
        int(counts["spans"]["value"]),
        size,
        datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None,
    )


def _measure_bytes(server: Server, index: str) -> int | None:
    """Return the bytes of an index without its replicas; None with a warning if it may not ask."""
    try:
        stats = server.request("GET", f"/{quote(index)}/_stats/store", read=answers.STORED.read)
    except AccessError as error:
        if error.status != FORBIDDEN:
            raise
        _log.warning("the size of index %r is left out: %s", index, error)
        return None
    return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])
