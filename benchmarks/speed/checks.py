"""What looking for damage costs: ``python -m benchmarks.speed.checks --url URL --index NAME``.

The same queries and the same ingest run with all checks of stored bytes and with none, in turns
within one process: each query as soon as the same query of the other way has ended, so that what
else the machine does falls on both. CPU time is compared.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import results
from benchmarks.phrases import phrases
from hybrid_search import connect
from hybrid_search.backends.embedded import (
    checksums,
    filter_sql,
    head,
    sql,
    term_sums,
    value_sums,
)

ROUNDS = 8
"""How often new clients ask all phrases; the median of the rounds' ratios is what counts."""

PASSES = 4
"""How often a client asks all phrases; what it meets in the first pass, it checks."""

INGEST_ROUNDS = 16
FILTER = {"metadata.services": "RentalCars_1"}
WIDE_FILTER = {"metadata.source": "sgd"}
"""A filter that leaves every call, the most that there is to check."""

WAYS = ("with", "without")


@contextmanager
def skip_checks() -> Iterator[None]:
    """Let queries read without a check, and ingests write no checksum and no sum."""
    with ExitStack() as stack:
        for target, name, replacement in (
            (term_sums, "read_coverage", lambda _: None),
            (term_sums, "update", lambda _: None),
            (sql, "read_codes_checksums", lambda *_: ()),
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


def in_turns(run: Callable[[str], float], number: int) -> dict[str, float]:
    """Return the seconds that `run` takes with checks and without.

    It gets the name of the way, and runs first with checks if `number` is even.
    """
    seconds = {}
    for way in sorted(WAYS, reverse=bool(number % 2)):
        with skip_checks() if way == "without" else nullcontext():
            seconds[way] = run(way)
    return seconds


def summarize(rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return the seconds of each way, and the quartiles of the ratio with checks to without."""
    ratios = [seconds["with"] / seconds["without"] for seconds in rounds]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    rounded = {way: [round(seconds[way], 3) for seconds in rounds] for way in WAYS}
    return {
        "CPU seconds": rounded,
        "times": round(median, 4),
        "quartiles": [round(low, 4), round(high, 4)],
    }


def compare_queries(
    url: str, index: str, texts: Sequence[str], where: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the first pass of new clients takes, and what later passes take."""
    rounds = [_ask_new_clients(url, index, texts, where) for _ in range(ROUNDS)]
    first_passes = [passes[0] for passes in rounds]
    later_passes = [_add(passes[1:]) for passes in rounds]
    return summarize(first_passes), summarize(later_passes)


def _ask_new_clients(
    url: str, index: str, texts: Sequence[str], where: dict[str, Any] | None
) -> list[dict[str, float]]:
    """Return the CPU seconds of each pass over all phrases, by a client for each way."""
    with connect(url) as checked, connect(url) as unchecked:
        clients = {"with": checked, "without": unchecked}

        def ask(text: str, way: str) -> float:
            started_at = time.process_time()
            clients[way].query(text, index=index, where=where)
            return time.process_time() - started_at

        in_turns(partial(ask, texts[0]), 0)  # opens the files
        return [
            _add([in_turns(partial(ask, text), turn + number) for turn, text in enumerate(texts)])
            for number in range(PASSES)
        ]


def _add(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {way: sum(seconds[way] for seconds in parts) for way in WAYS}


def compare_ingests(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what an ingest into a new index takes."""
    time_ingest(documents)  # loads the encoder
    return summarize([in_turns(lambda _: time_ingest(documents), n) for n in range(INGEST_ROUNDS)])


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
    parser.add_argument("--calls", type=int, default=100, help="calls that are ingested")
    options = parser.parse_args()
    texts = phrases(options.data)[: options.phrases]
    with connect(options.url) as client:
        info = client.describe(options.index)
    with gzip.open(options.data / "calls_sgd" / "calls.jsonl.gz", "rb") as calls:
        documents = [json.loads(line) for line in itertools.islice(calls, options.calls)]
    ask = partial(compare_queries, options.url, options.index, texts)
    first, later = ask(None)
    figures = {
        "queries": later,
        "queries, the first time": first,
        "queries with a filter": ask(FILTER)[1],
        "queries with a filter that leaves all": ask(WIDE_FILTER)[1],
        "ingest": compare_ingests(documents),
    }
    sizes = {"passages": info.passages, "phrases": len(texts), "calls ingested": options.calls}
    results.write("checks-calls_sgd", {**sizes, **figures}, results.SPEED)


if __name__ == "__main__":
    main()
