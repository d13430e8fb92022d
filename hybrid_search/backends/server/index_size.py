"""How large the indexes on a server are, counted before the first query and then remembered."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.searcher import Searcher

REMEMBERED_SECONDS = 600.0
"""Seconds for which a size is remembered: it only says how far to search."""

COUNTING = {"size": 0, "track_total_hits": True}


@dataclass(frozen=True, slots=True)
class IndexSize:
    """How many passages an index has, and in how many shards they are."""

    passages: int
    shards: int


class SizeCache:
    """The sizes of the indexes on one server. Safe to use from several threads."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._entries: dict[str, tuple[IndexSize, float]] = {}  # with monotonic seconds

    def find(self, index: str) -> IndexSize:
        """Return the remembered size of `index`; count its passages if there is none, or too old.

        Raises IndexMissingError if there is no such index.
        """
        size, counted_at = self._entries.get(index, (None, 0.0))
        if size is None or time.monotonic() - counted_at > REMEMBERED_SECONDS:
            size = self._count(index)
            self._entries[index] = (size, time.monotonic())
        return size

    def forget(self, index: str) -> None:
        """Remove what is remembered of `index`."""
        self._entries.pop(index, None)

    def _count(self, index: str) -> IndexSize:
        answer = self._searcher.search(index, COUNTING, answers.INDEX_SIZE)
        return IndexSize(answer["hits"]["total"]["value"], answer["_shards"]["total"])
