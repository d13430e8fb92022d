"""Time queries on a server, for one client and for eight at once.

Beside them a plain ``match`` and plain kNN on the same server.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.servers.entries import Corpus
from benchmarks.servers.pages import compare_pages
from benchmarks.servers.plain import PlainIndex
from benchmarks.servers.queries import run_query
from hybrid_search.backends.base import Backend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.passage_codec import passage_id
from hybrid_search.backends.types import PageOrder, Request
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW, Query
from hybrid_search.text import spans, token_codes
from hybrid_search.text.types import Floats, TokenCodes

CLIENTS = (1, 8)
ALPHAS = {"hybrid": Query.alpha, "spans": 1.0}
ROUNDS = 3
BY_SPANS = PageOrder(10, lambda _, spans: spans)


def measure(
    backend: ServerBackend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return what queries and writing cost, as written and with each index merged to one segment.

    Milliseconds are p50 and p95 over `phrases`; recall is that of the span leg, and pages are
    compared with those of an exhaustive search.
    """
    started_at = time.perf_counter()
    fill(backend, corpus, index)
    writing = time.perf_counter() - started_at
    plain = PlainIndex(backend, f"{index}-plain")
    plain.fill(corpus)
    wait_for_merges(backend, index)
    gc.collect()
    # A real client does not hold the corpus, so the garbage collector should not scan it here.
    gc.freeze()
    states = {"as written": measure_queries(backend, corpus, index, plain, phrases)}
    for name in (index, plain.name):
        merge_segments(backend, name)
    states["one segment"] = measure_queries(backend, corpus, index, plain, phrases)
    spans = sum(entry.spans for entry in corpus.entries)
    plain.drop()
    return {
        "passages": len(corpus.entries),
        "dimension": corpus.spec.dimension,
        "covering spans": spans,
        "vectors written a second": round(spans / writing),
        "states": states,
    }


def measure_queries(
    backend: ServerBackend, corpus: Corpus, index: str, plain: PlainIndex, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return milliseconds, bytes of answers and recall, with the segments that there are."""
    ways: dict[str, Callable[[str], object]] = {
        "plain match and plain kNN": lambda text: plain.ask(
            text, phrase_vector.query_vector(corpus.encoder, text)
        ),
        "hybrid": lambda text: run_query(backend, corpus, index, text),
    }
    milliseconds = {
        f"{name}, {clients} client{'s' * (clients > 1)}": percentiles
        for clients in CLIENTS
        for name, percentiles in time_ways(ways, phrases, clients).items()
    }
    return {
        "segments": count_segments(backend, index),
        "bytes": count_stored_bytes(backend, index),
        "milliseconds": milliseconds,
        "hybrid less plain, p50, 1 client": round(
            milliseconds["hybrid, 1 client"]["p50"]
            - milliseconds["plain match and plain kNN, 1 client"]["p50"],
            1,
        ),
        "bytes of answers a query": count_bytes(backend, corpus, index, phrases),
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


def fill(backend: Backend, corpus: Corpus, index: str) -> None:
    """Write `corpus` as `index`."""
    with backend.writer(index, corpus.spec) as writer:
        for start in range(0, len(corpus.entries), 64):
            assert not writer.write(corpus.entries[start : start + 64])


def count_bytes(
    backend: Backend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, int]:
    """Return the mean bytes of the answers to a hybrid query, and to one by spans alone."""
    return {
        name: round(
            fmean(
                run_query(backend, corpus, index, text, alpha).plan["answer_bytes"]
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
    """Merge an index to one segment, however long that takes."""
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


def time_ways(
    ways: Mapping[str, Callable[[str], object]], phrases: Sequence[str], clients: int
) -> dict[str, dict[str, float]]:
    """Return p50 and p95 of each way in milliseconds, by that many threads at once.

    All phrases are asked `ROUNDS` times. The ways take turns, a round each, so that other work of
    the machine slows all of them. A first round of each, in which the server compiles its code, is
    not counted.
    """
    milliseconds: dict[str, list[float]] = {name: [] for name in ways}

    def time_call(way: Callable[[str], object], text: str) -> float:
        started_at = time.perf_counter()
        way(text)
        return (time.perf_counter() - started_at) * 1000

    with ThreadPoolExecutor(clients) as pool:
        for counted in range(ROUNDS + 1):
            for name, way in ways.items():
                times = list(pool.map(partial(time_call, way), phrases))
                milliseconds[name] += times if counted else []
    return {
        name: {f"p{share}": round(float(np.percentile(times, share)), 1) for share in (50, 95)}
        for name, times in milliseconds.items()
    }


def recall(
    backend: Backend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, float]:
    """Compare the span leg with the exact best ten of all passages."""
    shares, first = [], []
    for text, vector, cosines in exact_cosines(corpus, tuple(phrases)):
        ordered = sorted(cosines.values())
        request = Request(text, vector, WINDOW, lexical=False, page_order=BY_SPANS)
        passage_ids = list(backend.find_candidates(index, request).semantic)[:10]
        shares.append(sum(cosines[id_] >= ordered[-10] - TIED for id_ in passage_ids) / 10)
        first.append(cosines[passage_ids[0]] >= ordered[-1] - TIED)
    return {
        "recall@10": round(float(np.mean(shares)), 3),
        "same best passage": round(float(np.mean(first)), 3),
    }


@lru_cache(maxsize=1)
def exact_cosines(
    corpus: Corpus, phrases: tuple[str, ...]
) -> list[tuple[str, Floats, dict[str, float]]]:
    """Return each phrase, its vector, and the best cosine of any span of every passage with it."""
    vectors = np.array([phrase_vector.query_vector(corpus.encoder, text) for text in phrases])
    ids = [passage_id(entry.document.id, entry.passage.ordinal) for entry in corpus.entries]
    best = np.array([best_span_cosines(entry.tokens, vectors) for entry in corpus.entries])
    return [
        (text, vector, dict(zip(ids, scores.tolist(), strict=True)))
        for text, vector, scores in zip(phrases, vectors, best.T, strict=True)
    ]


def best_span_cosines(coded: TokenCodes, vectors: Floats) -> Floats:
    """Return a passage's best span cosine with each of `vectors`, float32 ``[phrases]``.

    All phrases at once, where the product takes one.
    """
    if not len(coded.inverse_norms):
        return np.full(len(vectors), -1.0, np.float32)
    sums = spans.running_sums(token_codes.vectors(coded) @ vectors.T)
    first, last = spans.bounds(coded.counts)
    best: Floats = (
        (sums[coded.words[last, 3]] - sums[coded.words[first, 2]]) * coded.inverse_norms[:, None]
    ).max(axis=0)
    return best


TIED = 1e-5
"""Passages repeat themselves; among equal scores any passage counts as right."""
