"""Measure ingest, latency and size on real calls: ``python -m benchmarks.speed [--only NAME]``.

Results go to ``results/speed``.
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality.collection import ingest_task
from benchmarks.quality.tasks import TASKS
from benchmarks.speed import concurrency, ingest, latency, scale, size

WHAT = ("ingest", "latency", "concurrency", "size", "scale")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA)
    parser.add_argument(
        "--calls", type=int, default=1_000_000, help="only the first so many of calls_sgd"
    )
    parser.add_argument("--only", choices=WHAT, help="only this measurement")
    parser.add_argument(
        "--url",
        help="a server to ingest into, as in --url of the product; default: the embedded index",
    )
    options = parser.parse_args()
    measurements = {options.only} if options.only else set(WHAT)
    if "ingest" in measurements:
        kind = f"_{options.url.partition('+')[0]}" if options.url else ""
        results.write(
            f"ingest{kind}-calls_sgd",
            ingest.measure(options.data / TASKS["calls_sgd"].documents, options.calls, options.url),
            results.SPEED,
        )
    for name in ("calls_sgd", "calls_qmsum"):
        client = ingest_task(TASKS[name], options.data).client
        gc.collect()
        gc.freeze()  # a real client does not hold the texts, and should not be timed scanning them
        if "latency" in measurements:
            phrase_texts = phrases(options.data)
            results.write(
                f"latency-{name}",
                {
                    "phrases": len(phrase_texts),
                    "milliseconds": latency.measure(client, name, phrase_texts),
                },
                results.SPEED,
            )
        if "size" in measurements:
            results.write(f"size-{name}", size.measure(client, name), results.SPEED)
        client.close()
        if "concurrency" in measurements and name == "calls_sgd":
            results.write(
                f"concurrency-{name}",
                concurrency.measure(f"embedded:{results.STORE}", name, phrases(options.data)),
                results.SPEED,
            )
    if "scale" in measurements:
        results.write(
            "scale-calls_sgd",
            scale.measure(
                options.data / TASKS["calls_sgd"].documents,
                options.calls,
                results.read_result("size-calls_sgd", results.SPEED),
            ),
            results.SPEED,
        )


if __name__ == "__main__":
    main()
