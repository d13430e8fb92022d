"""Recall and latency of a server on ten times the passages.

The passages are those of ``python -m benchmarks.speed.larger``, which encodes them into an embedded
index first: calls_sgd, and copies of it with words exchanged.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
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

NEAREST = 1000
"""Passages of a phrase whose exact cosines are remembered."""


def measure(
    client: Client, data: Path, index: str, shards: int, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return recall, milliseconds and bytes on disk of an index of all passages in so many shards.

    The index is written, unless a run before has left it there.

    Raises:
        SystemExit: If an index is there that has other passages.
    """
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    phrase_encoder = encoder.truncate_encoder(encoder.load(device="cpu"))
    spec = IndexSpec.from_encoder(phrase_encoder.info, DEFAULT_POLICY)
    calls = list(lines(TASKS[TASK], data))

    def read() -> Iterator[Entry]:
        return read_entries(copy_calls(calls, COPIES), INDEX, spec)

    is_there = index in backend.list_indexes()
    backend.create_index(index, spec, {"shards": str(shards)})
    if not is_there:
        latency.write(backend, index, spec, read())
    latency.wait_for_merges(backend, index)
    vectors = np.array([phrase_vector.query_vector(phrase_encoder, text) for text in phrases])
    ids, cosines = compute_cosines(read(), vectors)
    count = backend.describe_index(index).passages
    if count != len(ids):
        raise SystemExit(f"{index!r} has {count} passages, not {len(ids)}: drop it")
    exact = [
        (text, vector, find_nearest(ids, column))
        for text, vector, column in zip(phrases, vectors, cosines.T, strict=True)
    ]
    gc.collect()
    gc.freeze()
    ways = {
        name: partial(ask_by_threads, partial(client.query, index=index, alpha=alpha))
        for name, alpha in latency.ALPHAS.items()
    }
    return {
        "passages": count,
        "dimension": spec.dimension,
        "policy": spec.policy,
        "graph dimension": backend.options.count_graph_numbers(spec.dimension),
        "shards": shards,
        "segments": latency.count_segments(backend, index),
        "bytes": latency.count_stored_bytes(backend, index),
        "bytes of answers a query": latency.count_bytes(client, index, phrases),
        **latency.compare_span_legs(backend, index, exact),
        "milliseconds": time_ways(ways, phrases, 1),
    }


def compute_cosines(entries: Iterable[Entry], vectors: Floats) -> tuple[list[str], Floats]:
    """Return the ids of all passages, and the best cosine of each with every vector."""
    ids, rows = [], []
    for entry in entries:
        ids.append(passage_id(entry.document.id, entry.passage.ordinal))
        rows.append(best_span_cosines(entry.tokens, vectors))
    return ids, np.array(rows)


def find_nearest(ids: Sequence[str], cosines: Floats) -> dict[str, float]:
    """Return the passages of the largest cosines."""
    nearest = np.argpartition(-cosines, NEAREST)[:NEAREST].tolist()
    return {ids[row]: float(cosines[row]) for row in nearest}
