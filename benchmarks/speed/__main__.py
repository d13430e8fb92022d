"""``python -m benchmarks.speed [--data DIR] [--calls N]``: ingest, latency and size on real calls, to results/*.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality.collection import ingested
from benchmarks.quality.tasks import TASKS
from benchmarks.speed import ingest, latency, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA)
    parser.add_argument("--calls", type=int, default=1_000_000, help="only the first so many of calls_sgd")
    options = parser.parse_args()
    results.write("ingest-calls_sgd", ingest.measure(options.data / TASKS["calls_sgd"].documents, options.calls))
    asked = phrases(options.data)
    for name in ("calls_sgd", "calls_qmsum"):
        collection = ingested(TASKS[name], options.data)
        results.write(f"latency-{name}", {"phrases": len(asked), "milliseconds": latency.measure(collection.client, name, asked)})
        collection.client.close()
        results.write(f"size-{name}", size.measure(results.STORE, name))


if __name__ == "__main__":
    main()
