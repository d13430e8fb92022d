"""``python -m tests.servers -- python -m benchmarks.servers [--only WHAT]``: the servers in HYBRID_SEARCH_TEST_URLS, to results/*.json."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.servers import latency, quantization
from benchmarks.servers.entries import TASK, corpus
from hybrid_search import connect
from hybrid_search.backends.server.backend import ServerBackend

INDEX = "benchmark"
DIMENSIONS = (384, 128)
OWN = 384
"""The model's own dimension: nothing is projected."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA)
    parser.add_argument("--calls", type=int, default=12_000, help="calls for latency")
    parser.add_argument("--quantized", type=int, default=2_000, help="calls for each quantization")
    parser.add_argument("--only", choices=("latency", "quantization"), help="only this measurement")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS, help="for latency")
    options = parser.parse_args()
    asked = phrases(options.data)[:50]
    for url in os.environ["HYBRID_SEARCH_TEST_URLS"].split():
        with connect(url) as client:
            assert isinstance(client.backend, ServerBackend)
            backend, name = client.backend, client.backend.server.engine
            version = ".".join(map(str, backend.server.version))
            if options.only != "quantization":
                for dimension in options.dimensions:
                    calls = corpus(options.data, options.calls, None if dimension == OWN else dimension)
                    measured = latency.measure(backend, calls, INDEX, asked)
                    results.write(
                        f"latency_{name}_{measured['dimension']}-{TASK}", {"version": ".".join(map(str, backend.server.version)), **measured}
                    )
                    backend.drop(INDEX)
            if options.only != "latency":
                measured = quantization.measure(backend, corpus(options.data, options.quantized), INDEX, asked)
                results.write(f"quantization_{name}-{TASK}", {"version": version, **measured})


if __name__ == "__main__":
    main()
