"""Time queries on a server, for one client and for many at once.

Beside them a plain ``match`` and plain kNN on the same server.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.clients import AskAll, ask_by_asyncio, ask_by_threads, time_ways
from benchmarks.quality.recall import best_span_cosines
from benchmarks.servers.entries import Corpus
from benchmarks.servers.pages import compare_pages
from benchmarks.servers.plain import PlainIndex
from hybrid_search import AsyncClient
from hybrid_search.backends.base import Backend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.heads import find_index
from hybrid_search.backends.server.passage_codec import passage_id
from hybrid_search.backends.types import IndexSpec, Request
from hybrid_search.client import Client
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import DEFAULTS, WINDOW
from hybrid_search.text.types import Entry, Floats

CLIENTS = (1, 8, 64)
ALPHAS = {"hybrid": DEFAULTS["alpha"], "spans": 1.0}
PLAIN = "plain match and plain kNN"
BATCH = 64

ExactCosines = tuple[str, Floats, dict[str, float]]
"""A phrase, its vector, and the best cosine of any span of passages with it."""

LEASE_SECONDS = 40
"""A shard's retention lease moves every 30 seconds.

A merge drops the whole `_source` of passages that were written before the lease.
"""


def measure(client: Client, corpus: Corpus, index: str, phrases: Sequence[str]) -> dict[str, Any]:
    """Return what queries and writing cost, as written and with each index merged to one segment.

    Milliseconds are p50 and p95 over `phrases`; recall is that of the span leg, and pages are
    compared with those of an exhaustive search.
    """
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    started_at = time.perf_counter()
    fill(backend, corpus, index)
    writing = time.perf_counter() - started_at
    plain = PlainIndex(backend, f"{index}-plain")
    plain.fill(corpus)
    wait_for_merges(backend, index)
    gc.collect()
    # A real client does not hold the corpus, so the garbage collector should not scan it here.
    gc.freeze()
    states = {"as written": measure_queries(client, corpus, index, plain, phrases)}
    for name in (index, plain.name):
        merge_segments(backend, name)
    states["one segment"] = measure_queries(client, corpus, index, plain, phrases)
    spans = sum(entry.spans for entry in corpus.entries)
    quantization = find_index(backend.server, index).options["quantization"]
    plain.drop()
    return {
        "passages": len(corpus.entries),
        "dimension": corpus.spec.dimension,
        "policy": corpus.spec.policy,
        "graph dimension": backend.options.count_graph_numbers(corpus.spec.dimension),
        "quantization": quantization,
        "covering spans": spans,
        "vectors written a second": round(spans / writing),
        "states": states,
    }


def measure_queries(
    client: Client, corpus: Corpus, index: str, plain: PlainIndex, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return milliseconds, bytes of answers and recall, with the segments that there are."""
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    milliseconds = {
        f"{name}, {clients} client{'s' * (clients > 1)}": percentiles
        for clients in CLIENTS
        for name, percentiles in time_ways(
            _list_ways(client, corpus, index, plain, clients), phrases, clients
        ).items()
    }
    return {
        "segments": count_segments(backend, index),
        "bytes": count_stored_bytes(backend, index),
        "milliseconds": milliseconds,
        "hybrid less plain, p50, 1 client": round(
            milliseconds["hybrid, 1 client"]["p50"] - milliseconds[f"{PLAIN}, 1 client"]["p50"],
            1,
        ),
        "bytes of answers a query": count_bytes(client, index, phrases),
        **recall(backend, corpus, index, phrases),
        "share of the exhaustive page": compare_pages(
            backend,
            corpus,
            index,
            phrases,
            {text: cosines for text, _, cosines in exact_cosines(corpus, tuple(phrases))},
            ALPHAS,
        ),
    }


def _list_ways(
    client: Client, corpus: Corpus, index: str, plain: PlainIndex, clients: int
) -> dict[str, AskAll]:
    """Return the plain pair and a hybrid query, as threads, and for several clients on asyncio."""

    def ask_plainly(text: str) -> None:
        plain.ask(text, phrase_vector.query_vector(corpus.encoder, text))

    ways: dict[str, AskAll] = {
        PLAIN: partial(ask_by_threads, ask_plainly),
        "hybrid": partial(ask_by_threads, partial(client.query, index=index)),
    }
    if clients > 1:
        later = AsyncClient.from_client(client)
        ways |= {
            f"{PLAIN}, asyncio": partial(
                ask_by_asyncio, lambda text: asyncio.to_thread(ask_plainly, text)
            ),
            "hybrid, asyncio": partial(ask_by_asyncio, partial(later.query, index=index)),
        }
    return ways


def fill(backend: Backend, corpus: Corpus, index: str) -> None:
    """Write `corpus` as `index`."""
    write(backend, index, corpus.spec, iter(corpus.entries))


def write(backend: Backend, index: str, spec: IndexSpec, entries: Iterator[Entry]) -> None:
    """Write passages as `index`."""
    with backend.writer(index, spec) as writer:
        while batch := list(islice(entries, BATCH)):
            assert not writer.write(batch)


def count_bytes(client: Client, index: str, phrases: Sequence[str]) -> dict[str, int]:
    """Return the mean bytes of the answers to a hybrid query, and to one by spans alone."""
    return {
        name: round(
            fmean(
                client.query(text, index=index, alpha=alpha).plan["answer_bytes"]
                for text in phrases
            )
        )
        for name, alpha in ALPHAS.items()
    }


def count_segments(backend: ServerBackend, index: str) -> int:
    """Return how many segments an index has."""
    stats = backend.server.request("GET", f"/{index}/_stats/segments")
    return int(stats["_all"]["primaries"]["segments"]["count"])


def count_stored_bytes(backend: ServerBackend, index: str) -> int:
    """Return the bytes that an index takes on disk."""
    stats = backend.server.request("GET", f"/{index}/_stats/store")
    return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])


def wait_for_merges(backend: ServerBackend, index: str) -> None:
    """Wait until the server has finished its merges, so that they slow no timed query."""
    while backend.server.request("GET", f"/{index}/_stats/merge")["_all"]["primaries"]["merges"][
        "current"
    ]:
        time.sleep(1)


def merge_segments(backend: ServerBackend, index: str) -> None:
    """Merge an index to one segment, without what the old ones had for replicas."""
    time.sleep(LEASE_SECONDS)
    backend.server.request("POST", f"/{index}/_flush")
    backend.server.request(
        "POST",
        f"/{index}/_forcemerge",
        params={"max_num_segments": 1, "wait_for_completion": False},
    )
    while count_segments(backend, index) > 1:
        time.sleep(1)
        # Until then the merged segments are still on disk beside the new one.
        for step in ("_flush", "_refresh"):
            backend.server.request("POST", f"/{index}/{step}")


def recall(
    backend: Backend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, float]:
    """Compare the span leg with the exact best ten of all passages."""
    return compare_span_legs(backend, index, exact_cosines(corpus, tuple(phrases)))


def compare_span_legs(
    backend: Backend, index: str, exact: Sequence[ExactCosines]
) -> dict[str, float]:
    """Return recall of the span leg; cosines may lack passages that are not among the best ten."""
    shares, first = [], []
    for text, vector, cosines in exact:
        ordered = sorted(cosines.values())
        request = Request(text, vector, WINDOW, lexical=False)
        found = backend.find(index, request).passages[:10]
        reached = [cosines.get(passage.key, -1.0) for passage in found]
        shares.append(sum(cosine >= ordered[-10] - TIED for cosine in reached) / 10)
        first.append(reached[0] >= ordered[-1] - TIED)
    return {
        "recall@10": round(float(np.mean(shares)), 3),
        "same best passage": round(float(np.mean(first)), 3),
    }


@lru_cache(maxsize=1)
def exact_cosines(corpus: Corpus, phrases: tuple[str, ...]) -> list[ExactCosines]:
    """Return each phrase, its vector, and the best cosine of any span of every passage with it."""
    vectors = np.array([phrase_vector.query_vector(corpus.encoder, text) for text in phrases])
    ids = [passage_id(entry.document.id, entry.passage.ordinal) for entry in corpus.entries]
    best = np.array([best_span_cosines(entry.tokens, vectors) for entry in corpus.entries])
    return [
        (text, vector, dict(zip(ids, scores.tolist(), strict=True)))
        for text, vector, scores in zip(phrases, vectors, best.T, strict=True)
    ]


TIED = 1e-5
"""Passages repeat themselves; among equal scores any passage counts as right."""
