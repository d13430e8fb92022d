"""Compare queries that read the words near the phrase with queries that read all windows.

``python -m benchmarks.speed.lists``, or ``--index larger`` for the index of
`benchmarks.speed.larger`, as far as that is filled. Each phrase is asked both ways, one after the
other in one process, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import results
from benchmarks.percentiles import find_percentiles
from benchmarks.phrases import phrases
from benchmarks.quality import recall
from benchmarks.quality.collection import SHIPPED, ingest_task
from benchmarks.quality.tasks import TASKS
from benchmarks.speed.larger import INDEX as LARGER
from hybrid_search import connect
from hybrid_search.backends.embedded import snapshot
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.text.types import Floats

WAYS = ("lists", "all windows")
ROUNDS = 2


def measure(client: Client, index: str, phrase_texts: Sequence[str]) -> dict[str, Any]:
    """Return recall, times and CPU times of both ways, and the ratios of lists to all windows."""
    vectors = np.array([phrase_vector.query_vector(SHIPPED.encoder, text) for text in phrase_texts])
    passages, exact = recall.find_best(results.STORE, index, vectors)
    calls: dict[str, Callable[[int], Any]] = {
        "span leg": lambda row: client.backend.find_candidates(
            index, Request("", vectors[row], WINDOW, lexical=False)
        ),
        "query, alpha 0.5": lambda row: client.query(phrase_texts[row], index=index),
    }
    figures: dict[str, Any] = {
        "phrases": len(phrase_texts),
        "passages": passages,
    }
    for name, call in calls.items():
        wall, cpu, shares = _time_both(call, exact)
        figures[name] = {way: _summarize(wall[way], cpu[way]) for way in WAYS}
        figures[name]["ratio"] = {"ms": _median_ratio(wall), "CPU": _median_ratio(cpu)}
        if name == "span leg":
            figures["recall@10"] = {way: round(float(np.mean(shares[way])), 4) for way in WAYS}
    return figures


def _time_both(
    call: Callable[[int], Any], exact: Sequence[Sequence[int]]
) -> tuple[dict[str, Floats], dict[str, Floats], dict[str, list[float]]]:
    """Return seconds and CPU seconds of each phrase, and the share of the exact best."""
    wall, cpu, shares = (defaultdict(list) for _ in range(3))
    for number in range(-1, ROUNDS):  # the first round warms up
        for row, expected in enumerate(exact):
            for way in WAYS if row % 2 else WAYS[::-1]:
                with nullcontext() if way == WAYS[0] else without_lists():
                    started, started_cpu = time.perf_counter(), time.process_time()
                    answer = call(row)
                    ended, ended_cpu = time.perf_counter(), time.process_time()
                if number >= 0:
                    wall[way].append(ended - started)
                    cpu[way].append(ended_cpu - started_cpu)
                    first = list(getattr(answer, "semantic", ()))[: recall.DEPTH]
                    shares[way].append(len(set(first).intersection(expected)) / recall.DEPTH)
    return _to_arrays(wall), _to_arrays(cpu), shares


def without_lists() -> Any:
    """Return a context in which the windows of all passages are compared."""
    return mock.patch.object(snapshot, "LISTED_PASSAGES", sys.maxsize)


def _to_arrays(seconds: dict[str, list[float]]) -> dict[str, Floats]:
    return {way: np.array(values, np.float32) for way, values in seconds.items()}


def _median_ratio(seconds: dict[str, Floats]) -> float:
    """Return what lists take of the time without them, at the median of all phrases."""
    lists, windows = (seconds[way] for way in WAYS)
    return round(float(np.median(lists / windows)), 3)


def _summarize(wall: Floats, cpu: Floats) -> dict[str, float]:
    return {
        **find_percentiles((wall * 1000).tolist()),
        "CPU": round(float(np.median(cpu)) * 1000, 1),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--index", choices=("calls_sgd", LARGER), default="calls_sgd")
    options = parser.parse_args()
    if options.index == LARGER:
        client = connect(f"embedded:{results.STORE}", precision=SHIPPED.precision)
    else:
        client = ingest_task(TASKS[options.index], options.data).client
    with client:
        figures = measure(client, options.index, phrases(options.data))
    name = "larger_calls_sgd" if options.index == LARGER else options.index
    results.write(f"lists-{name}", figures, results.SPEED)


if __name__ == "__main__":
    main()
