"""How large a body may be, how many calls are answered at once, and how long a caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import orjson
from starlette.requests import ClientDisconnect, Request

from hybrid_search.serve.options import ServeOptions
from hybrid_search.serve.problems import Problem

T = TypeVar("T")


class Gate:
    """Lets `limit` calls in, for which a caller waits `timeout` seconds.

    A call that took too long counts until it has ended.
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


JSON_TYPE = "application/json"


async def read_object(request: Request, options: ServeOptions) -> dict[str, Any]:
    """Return the JSON object that a request has as its body.

    Raises:
        Problem: If it has another type, is too large or too slow, or is no JSON object.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != JSON_TYPE:  # a page of another site cannot send this type unasked
        shown = repr(content_type[:80]) if content_type else "missing"
        raise Problem(415, f"the Content-Type is {shown}: it must be {JSON_TYPE}")
    body = await _read_body(request, options)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(value, dict):
        raise Problem(400, f"the body is a JSON {type(value).__name__}: it must be an object")
    return value


async def _read_body(request: Request, options: ServeOptions) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(options.timeout):
            async for chunk in request.stream():
                body += chunk
                if len(body) > options.body_bytes:
                    raise Problem(
                        413,
                        f"the body has more than {options.body_bytes:,} bytes: send less, "
                        "or start the service with a larger --body-kilobytes",
                        headers={"Connection": "close"},
                    )
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {options.timeout:g} seconds: send it again"
        ) from None
    except ClientDisconnect:
        raise Problem(400, "the connection was cut before the body was complete") from None
    return bytes(body)
