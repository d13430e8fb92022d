"""How many passages the legs of a query propose, and how far the graphs are searched for them.

The larger an index, the more: otherwise fewer and fewer of the exact best would be proposed.
`docs/benchmarks.md` has the recall at two sizes (`benchmarks.servers.latency` and `larger`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.types import Request

BY_GRAPH = (400, 2000)
"""The fewest and the most passages that the graphs propose."""

BY_WORDS = (300, 1500)
"""The fewest and the most passages that BM25 proposes, for both legs.

A graph search misses passages among near duplicates, and BM25 takes a tenth of its time.
"""

BATCH_PASSAGES = 500
"""Passages whose word codes come in one further request: 4 MB."""

MOST_PROPOSED = 10_000
"""The most passages that a leg proposes: servers return no more (``index.max_result_window``)."""

BY_WORDS_ALONE = 2
"""How many times the window BM25 alone proposes: so many passages often hold enough documents."""

FILTERED = 4
"""How many times as many are proposed where not all spans count: some have none that counts."""

SMALL_INDEX = 35_000
"""Up to so many passages the fewest are proposed; beyond, more by the square root of the number."""

SEARCHED_SPANS = (2500, 10_000)
"""The fewest and the most passages whose covering spans the graphs of a shard are searched for.

Among near duplicates a graph search ends too early (`benchmarks.servers.graph`). Servers take at
most 10,000. Between the two one passage in so many is searched for as `searched_share` says.
"""


@dataclass(frozen=True, slots=True)
class IndexSize:
    """The numbers of passages and shards of an index."""

    passages: int
    shards: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an index is searched: how many passages each leg proposes, 0 if it is not asked.

    The graphs of each shard are `searched` for so many.
    """

    by_words: int
    by_graph: int = 0
    searched: int = 0


def is_wide(request: Request) -> bool:
    """Return whether the codes of all candidates are too much for one answer."""
    return request.window > BATCH_PASSAGES


def choose_reach(engine: str, request: Request, size: IndexSize) -> Reach:
    """Return how far an index is searched for the span leg; BM25 helps unless it is wide."""
    share = size.passages // size.shards // find_dialect(engine).searched_share
    searched = _limit(share, SEARCHED_SPANS)
    if is_wide(request):
        return Reach(request.window if request.lexical else 0, request.window, searched)
    growth = math.sqrt(size.passages / SMALL_INDEX)
    times = FILTERED if request.span_filter else 1
    by_words = times * _limit(round(growth * BY_WORDS[0]), BY_WORDS)
    by_graph = max(2 * request.window, times * _limit(round(growth * BY_GRAPH[0]), BY_GRAPH))
    return Reach(max(request.window, by_words), min(MOST_PROPOSED, by_graph), searched)


def reach_by_words(request: Request) -> Reach:
    """Return how far an index is searched by BM25 alone."""
    return Reach(min(MOST_PROPOSED, BY_WORDS_ALONE * request.window))


def _limit(count: int, limits: tuple[int, int]) -> int:
    fewest, most = limits
    return min(most, max(fewest, count))
