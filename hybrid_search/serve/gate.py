"""`Gate`: how many calls are answered at once, and how long a caller waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from hybrid_search.serve.problems import Problem

T = TypeVar("T")


class Gate:
    """Lets a limited number of calls in; a call that took too long counts until it has ended.

    Args:
        limit: How many calls are answered or wait for a thread at once.
        timeout: How many seconds a caller waits.
    """

    def __init__(self, limit: int, timeout: float) -> None:
        self._limit, self._timeout = limit, timeout
        self.running = 0
        """Calls that have not ended."""

    async def run(self, call: Awaitable[T]) -> T:
        """Return what `call` returns.

        Raises:
            Problem: If there are too many calls (429), or this one takes too long (503).
        """
        if self.running >= self._limit:
            if asyncio.iscoroutine(call):
                call.close()
            raise Problem(429, f"{self.running} calls are being answered: ask again")
        self.running += 1
        task = asyncio.ensure_future(call)
        task.add_done_callback(self._release)
        try:
            # a thread cannot be stopped: the call goes on, and nobody waits for it
            return await asyncio.wait_for(asyncio.shield(task), self._timeout)
        except TimeoutError:
            raise Problem(
                503, f"the answer took more than {self._timeout:g} seconds: ask for less"
            ) from None

    def _release(self, task: asyncio.Future[T]) -> None:
        self.running -= 1
        if not task.cancelled():
            task.exception()  # looked at, so that an error nobody waits for is no warning
