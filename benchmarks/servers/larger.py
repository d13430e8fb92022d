"""Recall and latency of a server on ten times the passages.

The passages are those of ``python -m benchmarks.speed.larger``, which encodes them into an embedded
index first: calls_sgd, and copies of it with words exchanged.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clients import ask_by_threads, time_ways
from benchmarks.quality.recall import best_span_cosines
from benchmarks.quality.tasks import TASKS, lines
from benchmarks.servers import latency
from benchmarks.servers.entries import TASK, read_entries
from benchmarks.speed.larger import COPIES, INDEX, copy_calls
from hybrid_search import encoder
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.passage_codec import passage_id
from hybrid_search.backends.types import IndexSpec
from hybrid_search.client import Client
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.search import phrase_vector
from hybrid_search.text.types import Entry, Floats

BATCH = 64
NEAREST = 1000
"""Passages of a phrase whose exact cosines are remembered."""


def measure(
    client: Client, data: Path, index: str, shards: int, phrases: Sequence[str]
) -> dict[str, Any]:
    """Write all passages into so many shards, and return recall, milliseconds and bytes on disk."""
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    phrase_encoder = encoder.truncate_encoder(encoder.load(device="cpu"))
    spec = IndexSpec.from_encoder(phrase_encoder.info, DEFAULT_POLICY)
    vectors = np.array([phrase_vector.query_vector(phrase_encoder, text) for text in phrases])
    calls = list(lines(TASKS[TASK], data))
    entries = read_entries(copy_calls(calls, COPIES), INDEX, spec)
    backend.create_index(index, spec, {"shards": str(shards)})
    started_at = time.perf_counter()
    ids, cosines = write(backend, index, spec, entries, vectors)
    seconds = time.perf_counter() - started_at
    latency.wait_for_merges(backend, index)
    gc.collect()
    gc.freeze()
    exact = [
        (text, vector, find_nearest(ids, column))
        for text, vector, column in zip(phrases, vectors, cosines.T, strict=True)
    ]
    ways = {
        name: partial(ask_by_threads, partial(client.query, index=index, alpha=alpha))
        for name, alpha in latency.ALPHAS.items()
    }
    return {
        "passages": len(ids),
        "dimension": spec.dimension,
        "policy": spec.policy,
        "graph dimension": backend.options.count_graph_numbers(spec.dimension),
        "shards": shards,
        "segments": latency.count_segments(backend, index),
        "bytes": latency.count_stored_bytes(backend, index),
        "passages written a second": round(len(ids) / seconds),
        **latency.compare_span_legs(backend, index, exact),
        "milliseconds": time_ways(ways, phrases, 1),
    }


def write(
    backend: ServerBackend,
    index: str,
    spec: IndexSpec,
    entries: Iterator[Entry],
    vectors: Floats,
) -> tuple[list[str], Floats]:
    """Write all passages; return their ids, and the best cosine of each with every vector."""
    ids, rows = [], []
    with backend.writer(index, spec) as writer:
        while batch := list(islice(entries, BATCH)):
            assert not writer.write(batch)
            for entry in batch:
                ids.append(passage_id(entry.document.id, entry.passage.ordinal))
                rows.append(best_span_cosines(entry.tokens, vectors))
    return ids, np.array(rows)


def find_nearest(ids: Sequence[str], cosines: Floats) -> dict[str, float]:
    """Return the passages of the largest cosines."""
    nearest = np.argpartition(-cosines, NEAREST)[:NEAREST].tolist()
    return {ids[row]: float(cosines[row]) for row in nearest}
