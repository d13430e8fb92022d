"""How fast memory can be read, and what of it the span leg of an embedded index uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.phrases import phrases
from benchmarks.quality.collection import Collection, ingest_task
from benchmarks.quality.tasks import TASKS
from hybrid_search.backends.embedded import schema, segments
from hybrid_search.backends.embedded.near_passages import FEWEST_CANDIDATES, MOST_CANDIDATES, WIDTH
from hybrid_search.backends.types import Request
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.system import available_cores

SET = "calls_sgd"
BYTES, SHARE = "bytes of a query", "share of the memory's"
"""Names of figures of the result."""

BLOCK = 2**28
"""Bytes that a core reads: far more than any cache holds."""

ROUNDS = 5


def measure(data: Path) -> dict[str, Any]:
    """Return bytes a second of the memory and of the span leg, on all of calls_sgd."""
    collection = ingest_task(TASKS[SET], data)
    bandwidth = measure_memory()
    leg_bytes = count_leg_bytes(collection.store, SET)
    seconds = time_leg(collection, phrases(data))
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
        seconds = min(_time(lambda: list(pool.map(np.max, blocks))) for _ in range(ROUNDS))
    return blocks.nbytes / seconds


def count_leg_bytes(store: Path, index: str) -> dict[str, int]:
    """Return the least bytes that one search for a phrase reads, by what they are.

    The windows of all passages, the words of those with the nearest windows, and the token codes of
    the fewest candidates; of words and token codes as many as passages have on average.
    """
    connection = schema.connect(store / f"{index}.sqlite")
    parts = [
        segments.open_segment(segment, store / f"{index}.spans")
        for segment in segments.list_segments(connection)
    ]
    query = "SELECT count(*), sum(length(data)) FROM tokens"
    passages, token_bytes = connection.execute(query).fetchone()
    connection.close()
    windows, words = (sum(part.layers[layer].codes.nbytes for part in parts) for layer in (0, 1))
    return {
        "windows": windows,
        "words": words * min(passages, WIDTH * MOST_CANDIDATES) // passages,
        "token codes": token_bytes * min(passages, FEWEST_CANDIDATES) // passages,
    }


def time_leg(collection: Collection, texts: Sequence[str]) -> float:
    """Return the least seconds of the span leg over phrases, as it reads least for some of them.

    As of the memory the best counts, so that what else the machine does counts less.
    """
    encoder = collection.model.encoder
    requests = [
        Request("", phrase_vector.query_vector(encoder, text), WINDOW, lexical=False)
        for text in texts
    ]
    backend, name = collection.client.backend, collection.task.name
    seconds = [
        _time(lambda request=request: backend.find_candidates(name, request))  # type: ignore[misc]
        for request in requests
    ]
    return min(seconds)


def _time(call: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    call()
    return time.perf_counter() - started_at
