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
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.embedded.word_search import WordSearch
from hybrid_search.backends.types import Request
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.system import available_cores

Leg = Callable[[], object]

SET = "calls_sgd"
BYTES, SHARE = "bytes of a query", "share of the memory's"
"""Names of figures of the result."""

MODEL_NUMBERS = 288
"""Numbers of a vector of the shipped model."""

PARTS = ("centroids", "words", "spans", "word codes")
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
    return [partial(backend.find, name, request) for request in requests]


def count_leg_bytes(legs: Sequence[Leg]) -> dict[str, int]:
    """Return the bytes that a search reads, by what they are, at the median.

    They are the centroids, the codes of the words in the nearest lists, those of the passages that
    are near by these words, whose spans are compared, and of those that are scored exactly.
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
    score_words, score_spans = WordSearch.score_words, WordSearch.score_spans
    read, choose = Snapshot.read_stored_codes, word_lists.choose_lists

    def count_centroids(products: Any, *arguments: Any) -> Any:
        counter["centroids"] += len(products) * MODEL_NUMBERS * products.itemsize
        return choose(products, *arguments)

    def count_listed(search: WordSearch, query: Any, are_read: Any, usable: Any) -> Any:
        words = len(search.lists.find(are_read))
        counter["words"] += words * (search.lists.places.itemsize + search._type.itemsize)
        return score_words(search, query, are_read, usable)

    def count_compared(search: WordSearch, query: Any, passages: Any) -> Any:
        counter["spans"] += int((search.file.ends - search.file.starts)[passages].sum())
        return score_spans(search, query, passages)

    def count_codes(snapshot: Snapshot, passages: Any) -> Any:
        stored = read(snapshot, passages)
        counter["word codes"] += sum(map(len, stored.values()))
        return stored

    with (
        mock.patch.object(near_passages, "choose_lists", count_centroids),
        mock.patch.object(WordSearch, "score_words", count_listed),
        mock.patch.object(WordSearch, "score_spans", count_compared),
        mock.patch.object(Snapshot, "read_stored_codes", count_codes),
    ):
        yield


def time_call(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started_at = time.perf_counter()
    call()
    return time.perf_counter() - started_at
