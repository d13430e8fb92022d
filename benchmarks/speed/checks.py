"""What looking for damage costs: ``python -m benchmarks.speed.checks --url URL --index NAME``.

The same queries and the same ingest run with all checks of stored bytes and with none, in turns
within one process, so that what else the machine does falls on both. CPU time is compared.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import results
from benchmarks.phrases import phrases
from hybrid_search import connect
from hybrid_search.backends.embedded import (
    checked_codes,
    checksums,
    filter_sql,
    head,
    sql,
    term_sums,
    value_sums,
)

ROUNDS = 6
"""How often each of the two runs; the median of the ratios of neighbours is what counts."""

INGEST_ROUNDS = 3
FILTER = {"metadata.services": "RentalCars_1"}
WIDE_FILTER = {"metadata.source": "sgd"}
"""A filter that leaves every call, the most that there is to check."""


@contextmanager
def skip_checks() -> Iterator[None]:
    """Let queries read without a check, and ingests write no checksum and no sum."""
    with ExitStack() as stack:
        for target, name, replacement in (
            (term_sums, "read_coverage", lambda _: None),
            (term_sums, "update", lambda _: None),
            (checked_codes.CheckedCodes, "_find_changed", lambda *_: set()),
            (checksums, "find_content_fault", lambda *_: None),
            (checksums, "is_changed", lambda *_: False),
            (sql, "insert_checksums", lambda *_: None),
            (sql, "compute_content_checksum", lambda _: 0),
            (value_sums, "add", lambda *_: None),
            (filter_sql, "check_filters", lambda *_: None),
            (head, "_are_as_written", lambda *_: True),
            (head, "_write_checksum", lambda *_: None),
            (head, "mend", lambda *_: None),
        ):
            stack.enter_context(patch.object(target, name, replacement))
        yield


def compare(run: Callable[[], float], rounds: int) -> dict[str, Any]:
    """Return the seconds of both ways, and the median ratio of neighbouring runs."""
    run()  # what is done once a process
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(rounds):
        for way in sorted(seconds, reverse=bool(number % 2)):
            with skip_checks() if way == "without" else nullcontext():
                seconds[way].append(run())
    pairs = zip(seconds["with"], seconds["without"], strict=True)
    ratio = statistics.median(checked / unchecked for checked, unchecked in pairs)
    rounded = {way: [round(value, 3) for value in values] for way, values in seconds.items()}
    return {"CPU seconds": rounded, "times": round(ratio, 4)}


def time_queries(
    url: str, index: str, texts: Sequence[str], passes: int, where: dict[str, Any] | None
) -> float:
    """Return the CPU seconds of all queries by a client of its own, in the last of some passes.

    A new client has checked nothing yet: in its first pass it checks the codes of each passage.
    """
    with connect(url) as client:
        client.query(texts[0], index=index, where=where)
        for _ in range(passes):
            started_at = time.process_time()
            for text in texts:
                client.query(text, index=index, where=where)
        return time.process_time() - started_at


def time_ingest(documents: Sequence[dict[str, Any]]) -> float:
    """Return the CPU seconds of an ingest into a new index."""
    with tempfile.TemporaryDirectory() as folder, connect(f"embedded:{folder}") as client:
        started_at = time.process_time()
        client.ingest(documents)
        return time.process_time() - started_at


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", default=f"embedded:{results.STORE}", help="where the index is")
    parser.add_argument("--index", default="calls_sgd", help="an index of all of calls_sgd")
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--phrases", type=int, default=64)
    parser.add_argument("--calls", type=int, default=300, help="calls that are ingested")
    options = parser.parse_args()
    texts = phrases(options.data)[: options.phrases]
    with connect(options.url) as client:
        info = client.describe(options.index)
    with gzip.open(options.data / "calls_sgd" / "calls.jsonl.gz", "rb") as calls:
        documents = [json.loads(line) for line in itertools.islice(calls, options.calls)]
    ask = partial(time_queries, options.url, options.index, texts)
    figures = {
        "queries": compare(partial(ask, 2, None), ROUNDS),
        "queries, the first time": compare(partial(ask, 1, None), ROUNDS),
        "queries with a filter": compare(partial(ask, 2, FILTER), ROUNDS),
        "queries with a filter that leaves all": compare(partial(ask, 2, WIDE_FILTER), ROUNDS),
        "ingest": compare(partial(time_ingest, documents), INGEST_ROUNDS),
    }
    sizes = {"passages": info.passages, "phrases": len(texts), "calls ingested": options.calls}
    results.write("checks-calls_sgd", {**sizes, **figures}, results.SPEED)


if __name__ == "__main__":
    main()
