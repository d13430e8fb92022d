"""`AsyncClient`: the methods of `Client` for asyncio programs.

A query is a few round trips and then arithmetic: encoding the phrase, and scoring every span of
hundreds of passages. The arithmetic must not block the event loop, so each query runs in a thread.
All queries share one pool of threads and one pool of connections.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from hybrid_search.api import connect
from hybrid_search.client import Client
from hybrid_search.config import ConnectOptions
from hybrid_search.errors import UsageError
from hybrid_search.parameters import expand_options

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 16
"""Number of queries that run at once: some wait for the server while others compute.

The connection pool holds twice as many connections.
"""


def _open_threads(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="hybrid_search")


def _run_in_thread(
    method: Callable[Concatenate[Client, P], R],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    """Return a coroutine function that runs a `Client` method in a thread."""

    @functools.wraps(method)
    async def run(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(functools.partial(method, self._client, *args, **kwargs))

    return run


def _iterate_in_thread(
    method: Callable[Concatenate[Client, P], Iterator[R]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[R]]:
    """Return an async generator that fetches each item of a `Client` method in a thread."""

    @functools.wraps(method)
    async def iterate(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[R]:
        items = iter(method(self._client, *args, **kwargs))
        while (item := await self._run(lambda: next(items, None))) is not None:
            yield item

    return iterate


class AsyncClient:
    """An asyncio client with the methods of `Client`.

    Use it in an ``async with`` block, which closes it. Cancelling a call stops waiting for it, but
    the call itself runs to its end.

    Args:
        url: As in `hybrid_search.connect`.
        threads: How many calls run at once; further calls wait.
        **options: As in `hybrid_search.connect`.

    >>> async def count_hits(*phrases: str) -> list[int]:
    ...     async with hybrid_search.AsyncClient() as client:
    ...         results = await asyncio.gather(*(client.query(text, size=2) for text in phrases))
    ...     return [len(result) for result in results]
    >>> asyncio.run(count_hits("refund", "waiting on hold"))
    [2, 2]
    """

    @expand_options(ConnectOptions)
    def __init__(
        self, url: str | None = None, *, threads: int = THREADS, **options: Unpack[ConnectOptions]
    ) -> None:
        self._client = connect(url, **options)
        self._threads = _open_threads(threads)

    @classmethod
    def from_client(cls, client: Client, *, threads: int = THREADS) -> Self:
        """Return an asynchronous client that shares the connections and encoder of `client`.

        Args:
            client: A client from `hybrid_search.connect`. Closing either one closes both.
            threads: How many calls run at once; further calls wait.

        >>> async def find(client: Client) -> str:
        ...     result = await hybrid_search.AsyncClient.from_client(client).query("money back")
        ...     return result.hits[0].id
        >>> with hybrid_search.connect() as client:
        ...     asyncio.run(find(client))
        'shop-001'
        """
        shared = cls.__new__(cls)
        shared._client, shared._threads = client, _open_threads(threads)
        return shared

    query = _run_in_thread(Client.query)
    open_document = _run_in_thread(Client.open_document)
    check_quote = _run_in_thread(Client.check_quote)
    requests = _run_in_thread(Client.requests)
    best_spans = _run_in_thread(Client.best_spans)
    phrase_similarity = _run_in_thread(Client.phrase_similarity)
    mine = _iterate_in_thread(Client.mine)
    mine_blocks = _iterate_in_thread(Client.mine_blocks)
    queue_judging = _run_in_thread(Client.queue_judging)
    estimate_shares = _run_in_thread(Client.estimate_shares)
    tune = _run_in_thread(Client.tune)
    check_topics = _run_in_thread(Client.check_topics)
    explain_rules = _run_in_thread(Client.explain_rules)
    similar = _run_in_thread(Client.similar)
    cluster = _run_in_thread(Client.cluster)
    discover = _run_in_thread(Client.discover)
    ingest = _run_in_thread(Client.ingest)
    attach = _run_in_thread(Client.attach)
    ingest_lines = _run_in_thread(Client.ingest_lines)
    run_ingest = _run_in_thread(Client.run_ingest)
    plan_lines = _run_in_thread(Client.plan_lines)
    setup = _run_in_thread(Client.setup)
    reindex = _run_in_thread(Client.reindex)
    verify = _run_in_thread(Client.verify)
    redact = _run_in_thread(Client.redact)
    search_words = _run_in_thread(Client.search_words)
    delete = _run_in_thread(Client.delete)
    describe = _run_in_thread(Client.describe)
    indexes = _run_in_thread(Client.indexes)
    drop = _run_in_thread(Client.drop)

    async def close(self) -> None:
        """Wait for running calls, then close all connections; later calls raise UsageError."""
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def _run(self, call: Callable[[], R]) -> R:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, call)
        except RuntimeError as error:  # after its shutdown the pool refuses calls
            raise UsageError(f"{self!r} is closed: open another one") from error
        return await future

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._client!r}"
