"""How large the indexes on a server are, and how far they are searched because of it.

The larger an index, the more of its passages are searched for and proposed: otherwise fewer and
fewer of the exact best would be among them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.searcher import Searcher

REMEMBERED_SECONDS = 600.0
"""Seconds for which a size is remembered: it only says how far to search."""

SEARCHED_SPANS = (2500, 10_000)
"""The fewest and the most passages whose covering spans the graphs of a shard are searched for.

Transcripts repeat themselves, and among near duplicates a graph search ends too early:
docs/servers.md has the recall for fewer (`benchmarks.servers.graph`). Servers take at most 10,000.
"""

SEARCHED_SHARE = 7
"""One in so many passages of a shard is searched for, between these two."""

PROPOSED = (400, 2000)
"""The fewest and the most passages that the span leg takes from the server's graphs."""

SMALL_INDEX = 35_000
"""Up to so many passages the fewest are proposed, and of more by the square root of their number.

`docs/servers.md` has the recall on ten times as many (`benchmarks.servers.larger`).
"""

COUNTING = {"size": 0, "track_total_hits": True}


@dataclass(frozen=True, slots=True)
class IndexSize:
    """How many passages an index has, and in how many shards they are."""

    passages: int
    shards: int

    def count_searched(self) -> int:
        """Return for how many passages the graphs of each shard are searched."""
        fewest, most = SEARCHED_SPANS
        share = self.passages // self.shards // SEARCHED_SHARE
        return min(most, max(fewest, share))

    def count_proposed(self) -> int:
        """Return how many passages of all shards together the graphs propose."""
        fewest, most = PROPOSED
        growth = math.sqrt(self.passages / SMALL_INDEX)
        return min(most, max(fewest, round(fewest * growth)))


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
