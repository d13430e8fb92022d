"""Time an embedded index that many clients query at once, as threads and on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any

from benchmarks.clients import ask_by_tasks, ask_by_threads, summarise
from hybrid_search import AsyncClient, connect

CLIENTS = (1, 8, 64)


def measure(url: str, index: str, phrases: Sequence[str]) -> dict[str, Any]:
    """Return queries a second, and p50 and p95 in milliseconds, by the number of clients.

    Each client asks one phrase after the other, without a pause; each phrase is asked as often as
    there are clients in eight, and at least once. Nothing else may run meanwhile.
    """
    figures = {
        f"{kind}, {clients} client{'s' * (clients > 1)}": time_all(url, index, phrases, clients)
        for clients in CLIENTS
        for kind, time_all in WAYS.items()
    }
    return {"phrases": len(phrases), "alpha": 0.5, "queries": figures}


def _time_threads(url: str, index: str, phrases: Sequence[str], clients: int) -> dict[str, float]:
    with connect(url) as client:
        client.query(phrases[0], index=index)
        started_at = time.perf_counter()
        ask = partial(client.query, index=index)
        seconds = ask_by_threads(ask, _repeat(phrases, clients), clients)
        return summarise(seconds, time.perf_counter() - started_at)


def _time_asyncio(url: str, index: str, phrases: Sequence[str], clients: int) -> dict[str, float]:
    return asyncio.run(_ask_all(url, index, phrases, clients))


async def _ask_all(url: str, index: str, phrases: Sequence[str], clients: int) -> dict[str, float]:
    async with AsyncClient(url) as client:
        await client.query(phrases[0], index=index)
        started_at = time.perf_counter()
        ask = partial(client.query, index=index)
        seconds = await ask_by_tasks(ask, _repeat(phrases, clients), clients)
        return summarise(seconds, time.perf_counter() - started_at)


WAYS: dict[str, Callable[[str, str, Sequence[str], int], dict[str, float]]] = {
    "threads": _time_threads,
    "asyncio": _time_asyncio,
}


def _repeat(phrases: Sequence[str], clients: int) -> list[str]:
    return list(chain.from_iterable(repeat(phrases, max(1, clients // 8))))
