"""Time `hybrid-search serve` beside the client in Python: ``python -m benchmarks.speed.service``.

Both answer the same phrases from the hard sample, in turns within one run. Then 64 clients ask
at once, and the service's memory is read while it answers on.
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.percentiles import find_percentiles
from benchmarks.quality import hard_sample
from hybrid_search import connect
from tests.helpers.service import JSON, RunningService, run_service

CLIENTS = 64
MEMORY_READINGS = 10


def measure(requests: int, rounds: int) -> dict[str, Any]:
    """Return milliseconds, statuses and resident megabytes.

    Args:
        requests: How many requests are answered while memory is read.
        rounds: How many times each phrase is asked of both.
    """
    phrases = hard_sample.read_phrases()
    with tempfile.TemporaryDirectory() as folder:
        url = f"embedded:{Path(folder) / 'store'}"
        with connect(url) as client:
            client.ingest(
                map(json.loads, hard_sample.CALLS.read_text(encoding="utf-8").splitlines())
            )
            with run_service(url) as service:
                connection = http.client.HTTPConnection("127.0.0.1", service.port)
                ways: dict[str, Callable[[str], object]] = {
                    "Client.query": client.query,
                    "POST /v1/query": lambda phrase: _ask(connection, phrase),
                }
                milliseconds = _time_in_turns(ways, phrases, rounds)
                return {
                    "phrases": len(phrases),
                    "rounds": rounds,
                    "milliseconds": milliseconds,
                    f"statuses of {CLIENTS} clients at once": _ask_at_once(service, phrases),
                    "resident megabytes": _read_memory(service, connection, phrases, requests),
                }


def _ask(connection: http.client.HTTPConnection, phrase: str) -> int:
    """Ask for a phrase on an open connection, and return the status."""
    connection.request("POST", "/v1/query", json.dumps({"phrase": phrase}), JSON)
    response = connection.getresponse()
    json.loads(response.read())
    return response.status


def _time_in_turns(
    ways: dict[str, Callable[[str], object]], phrases: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    """Return p50 and p95 of each way; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for phrase in phrases:
            for name, ask in ways.items():
                started_at = time.perf_counter()
                ask(phrase)
                if number:
                    seconds[name].append(time.perf_counter() - started_at)
    return {
        name: find_percentiles([1000 * value for value in values])
        for name, values in seconds.items()
    }


def _ask_at_once(service: RunningService, phrases: Sequence[str]) -> dict[str, int]:
    """Return how many answers of each status some clients get that ask at the same time."""
    values = [{"phrase": phrases[number % len(phrases)]} for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda value: service.post("/v1/query", value), values))
    statuses = [str(answer.status) for answer in answers]
    return {status: statuses.count(status) for status in sorted(set(statuses))}


def _read_memory(
    service: RunningService,
    connection: http.client.HTTPConnection,
    phrases: Sequence[str],
    requests: int,
) -> dict[str, float]:
    """Return the resident memory of the service by the number of requests answered so far."""
    megabytes = {"0": _resident_megabytes(service)}
    step = max(1, requests // MEMORY_READINGS)
    for number in range(1, requests + 1):
        _ask(connection, phrases[number % len(phrases)])
        if number % step == 0:
            megabytes[str(number)] = _resident_megabytes(service)
    return megabytes


def _resident_megabytes(service: RunningService) -> float:
    status = Path(f"/proc/{service.process.pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return round(int(line.split()[1]) / 1024, 1)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    results.write("service-sample", measure(options.requests, options.rounds), results.SPEED)


if __name__ == "__main__":
    main()
