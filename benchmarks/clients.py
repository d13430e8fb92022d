"""Times calls that many clients make at once, as threads and on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

from benchmarks.percentiles import find_percentiles

ROUNDS = 3

Ask = Callable[[str], object]
AskLater = Callable[[str], Awaitable[object]]
AskAll = Callable[[Sequence[str], int], list[float]]
"""Asks all phrases by that many clients, and returns the seconds that each took."""


def ask_by_threads(ask: Ask, phrases: Sequence[str], clients: int) -> list[float]:
    """Ask all phrases by that many threads, each one phrase after the other."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(partial(_time_call, ask), phrases))


def _time_call(ask: Ask, phrase: str) -> float:
    started_at = time.perf_counter()
    ask(phrase)
    return time.perf_counter() - started_at


def ask_by_asyncio(ask: AskLater, phrases: Sequence[str], clients: int) -> list[float]:
    """Ask all phrases by that many tasks of one event loop, each one phrase after the other."""
    return asyncio.run(ask_by_tasks(ask, phrases, clients))


async def ask_by_tasks(ask: AskLater, phrases: Sequence[str], clients: int) -> list[float]:
    """Ask all phrases by that many tasks of the running loop, each one phrase after the other."""
    waiting = iter(phrases)
    seconds_by_task = await asyncio.gather(*(_ask_next(ask, waiting) for _ in range(clients)))
    return list(chain.from_iterable(seconds_by_task))


async def _ask_next(ask: AskLater, waiting: Iterable[str]) -> list[float]:
    seconds = []
    for phrase in waiting:
        started_at = time.perf_counter()
        await ask(phrase)
        seconds.append(time.perf_counter() - started_at)
    return seconds


def time_ways(
    ways: Mapping[str, AskAll], phrases: Sequence[str], clients: int
) -> dict[str, dict[str, float]]:
    """Return p50 and p95 of each way in milliseconds, and calls a second, by so many clients.

    All phrases are asked `ROUNDS` times, and more often by more than 32 clients. The ways take
    turns, a round each, so that other work of the machine slows all of them. A first round of each,
    in which the server compiles its code, is not counted.
    """
    repeated = list(phrases) * max(1, clients // 32)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    totals = dict.fromkeys(ways, 0.0)
    for counted in range(ROUNDS + 1):
        for name, ask_all in ways.items():
            started_at = time.perf_counter()
            times = ask_all(repeated, clients)
            if counted:
                seconds[name] += times
                totals[name] += time.perf_counter() - started_at
    return {name: summarise(seconds[name], totals[name]) for name in ways}


def summarise(seconds: Sequence[float], total: float) -> dict[str, float]:
    """Return calls a second, and p50 and p95 in milliseconds; all took `total` seconds."""
    milliseconds = [1000 * call_seconds for call_seconds in seconds]
    return {"a second": round(len(seconds) / total, 1), **find_percentiles(milliseconds)}
