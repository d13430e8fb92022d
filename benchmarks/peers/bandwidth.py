"""How fast memory can be read, and what of it the span leg of an embedded index uses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.phrases import phrases
from benchmarks.quality.collection import Collection, ingest_task
from benchmarks.quality.tasks import TASKS
from hybrid_search.backends.embedded import near_passages, word_lists
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import WORDS
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.types import Request
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.system import available_cores

Leg = Callable[[], object]

SET = "calls_sgd"
BYTES, SHARE = "bytes of a query", "share of the memory's"
"""Names of figures of the result."""

PARTS = ("centroids", "words", "windows", "word codes")
"""What a search reads."""

BLOCK = 2**28
"""Bytes that a core reads: far more than any cache holds."""

ROUNDS = 5


def measure(data: Path) -> dict[str, Any]:
    """Return bytes a second of the memory and of the span leg, on all of calls_sgd."""
    collection = ingest_task(TASKS[SET], data)
    bandwidth = measure_memory()
    legs = list_legs(collection, phrases(data))
    leg_bytes = count_leg_bytes(legs)
    seconds = median(map(time_call, legs))
    rate = sum(leg_bytes.values()) / seconds
    return {
        "set": SET,
        "passages": sum(map(len, collection.places.values())),
        "cores": available_cores(),
        "memory, GB/s": round(bandwidth / 1e9, 2),
        BYTES: leg_bytes,
        "span leg, ms": round(seconds * 1000, 1),
        "span leg, GB/s": round(rate / 1e9, 2),
        SHARE: round(rate / bandwidth, 3),
    }


def measure_memory() -> float:
    """Return the bytes a second that all cores together read in order: the best of some rounds."""
    cores = available_cores()
    blocks = np.ones((cores, BLOCK // 8), np.uint64)
    with ThreadPoolExecutor(cores) as pool:
        seconds = min(time_call(lambda: list(pool.map(np.max, blocks))) for _ in range(ROUNDS))
    return blocks.nbytes / seconds


def list_legs(collection: Collection, texts: Sequence[str]) -> list[Leg]:
    """Return the search of the span leg for each phrase."""
    backend, name = collection.client.backend, collection.task.name
    encoder = collection.model.encoder
    requests = [
        Request("", phrase_vector.query_vector(encoder, text), WINDOW, lexical=False)
        for text in texts
    ]
    return [partial(backend.find_candidates, name, request) for request in requests]


def count_leg_bytes(legs: Sequence[Leg]) -> dict[str, int]:
    """Return the bytes that a search reads, by what they are, at the median.

    They are the centroids, the codes of the words in the lists of the nearest, the windows of the
    passages that are near by these words, and the word codes of those that are scored exactly.
    """
    counters = []
    for leg in legs:
        counter: Counter[str] = Counter(dict.fromkeys(PARTS, 0))
        with count_reads(counter):
            leg()
        counters.append(counter)
    return {name: round(median(counter[name] for counter in counters)) for name in counters[0]}


@contextmanager
def count_reads(counter: Counter[str]) -> Iterator[None]:
    """Add to a counter the bytes that searches read meanwhile."""
    score_listed, score = ShortCodeSearch.score_listed, ShortCodeSearch.score
    score_all, read = ShortCodeSearch.score_all, Snapshot.read_stored_codes
    find_nearest = word_lists.find_nearest

    def count_centroids(vector: Any, used: Any, *arguments: Any) -> Any:
        counter["centroids"] += used.centroids.nbytes
        return find_nearest(vector, used, *arguments)

    def count_listed(search: ShortCodeSearch, queries: Any, lists: Any, centroids: Any) -> Any:
        entries = int(lists.sizes[centroids].sum())
        entry_bytes = lists.words.itemsize + count_row_bytes(search, WORDS)
        counter["words"] += entries * entry_bytes
        return score_listed(search, queries, lists, centroids)

    def count_scored(search: ShortCodeSearch, queries: Any, layer: int, rows: Any) -> Any:
        name = "words" if layer == WORDS else "windows"
        count = int(search.codes.layers[layer].counts[rows].sum())
        counter[name] += count * count_row_bytes(search, layer)
        return score(search, queries, layer, rows)

    def count_all(search: ShortCodeSearch, queries: Any) -> Any:
        counter["windows"] += search.codes.layers[0].codes.nbytes
        return score_all(search, queries)

    def count_codes(snapshot: Snapshot, passages: Any) -> Any:
        stored = read(snapshot, passages)
        counter["word codes"] += sum(map(len, stored.values()))
        return stored

    with (
        mock.patch.object(near_passages, "find_nearest", count_centroids),
        mock.patch.object(ShortCodeSearch, "score_listed", count_listed),
        mock.patch.object(ShortCodeSearch, "score", count_scored),
        mock.patch.object(ShortCodeSearch, "score_all", count_all),
        mock.patch.object(Snapshot, "read_stored_codes", count_codes),
    ):
        yield


def count_row_bytes(search: ShortCodeSearch, layer: int) -> int:
    """Return the bytes of one vector in a layer."""
    codes = search.codes.layers[layer].codes
    return int(codes.shape[1] * codes.itemsize)


def time_call(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started_at = time.perf_counter()
    call()
    return time.perf_counter() - started_at
