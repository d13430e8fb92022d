"""Measure real servers: ``python -m tools.servers -- python -m benchmarks.servers [--only NAME]``.

The servers are those of HYBRID_SEARCH_TEST_URLS; results go to ``results/servers``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality.tasks import TASKS
from benchmarks.servers import agreement, attached, graph, larger, latency, quantization
from benchmarks.servers.entries import TASK, corpus
from hybrid_search import connect
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client

INDEX = "benchmark"
LARGER_INDEX = "benchmark-larger"
DIMENSIONS = (288, 128)

MEASUREMENTS = {"quantization": quantization.measure, "graph": graph.measure}


def main() -> None:
    """Run the command."""
    options = _parse_arguments()
    phrase_texts = phrases(options.data)[:50]
    for url in os.environ["HYBRID_SEARCH_TEST_URLS"].split():
        with connect(url) as client:
            _measure(client, options, phrase_texts)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA)
    parser.add_argument("--calls", type=int, default=12_000, help="calls for latency")
    parser.add_argument("--fewer", type=int, default=2_000, help="calls for the other measurements")
    parser.add_argument(
        "--only",
        choices=("agreement", "languages", "latency", "larger", "attached", *MEASUREMENTS),
        help="only this measurement; larger takes an hour, and is not among all",
    )
    parser.add_argument(
        "--dimensions",
        type=int,
        nargs="+",
        default=DIMENSIONS,
        help="for latency, sizes of the model",
    )
    parser.add_argument("--shards", type=int, default=1, help="primary shards, for larger")
    parser.add_argument(
        "--keep", action="store_true", help="leave the index of larger, which the next run measures"
    )
    return parser.parse_args()


def _measure(client: Client, options: argparse.Namespace, phrase_texts: Sequence[str]) -> None:
    """Write the results of one server."""
    assert isinstance(client.backend, ServerBackend)
    backend, name = client.backend, client.backend.server.engine
    if options.only in (None, "agreement"):
        measured = agreement.measure(backend, options.data, options.fewer, INDEX)
        _write(backend, f"agreement_{name}", measured)
    if options.only in (None, "languages"):
        measured = agreement.measure_languages(backend, options.data, INDEX)
        _write(backend, f"languages_{name}", measured, "stsb_multi")
    if options.only in (None, "latency"):
        for dimension in options.dimensions:
            calls = corpus(options.data, options.calls, dimension)
            measured = latency.measure(client, calls, INDEX, phrase_texts)
            _write(backend, f"latency_{name}_{measured['dimension']}", measured)
            backend.drop_index(INDEX)
    if options.only in (None, "attached"):
        queries = list(TASKS[TASK].queries(options.data, "dev"))
        calls = corpus(options.data, options.fewer)
        measured = attached.measure(client, calls, INDEX, phrase_texts, queries)
        _write(backend, f"attached_{name}", measured)
    if options.only == "larger":
        measured = larger.measure(client, options.data, LARGER_INDEX, options.shards, phrase_texts)
        _write(backend, f"larger_{name}_{options.shards}", measured)
        if not options.keep:
            backend.drop_index(LARGER_INDEX)
    for measurement in (
        other_name for other_name in MEASUREMENTS if options.only in (None, other_name)
    ):
        measured = MEASUREMENTS[measurement](
            backend, corpus(options.data, options.fewer), INDEX, phrase_texts
        )
        _write(backend, f"{measurement}_{name}", measured)


def _write(
    backend: ServerBackend, name: str, measured: Mapping[str, Any], data: str = TASK
) -> None:
    version = ".".join(map(str, backend.server.version))
    results.write(f"{name}-{data}", {"version": version, **measured}, results.SERVERS)


if __name__ == "__main__":
    main()
