"""`Guard`: what happens around every request, whatever its route.

It checks the Host and the token, adds the headers that browsers obey, turns what went wrong into an
answer that tells nothing of this machine, and counts and logs the request without its text.
"""

from __future__ import annotations

import hmac
import logging
import time
import traceback
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybrid_search.serve.options import ServeOptions
from hybrid_search.serve.problems import Problem, build_response

_log = logging.getLogger(__name__)

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every answer: no page of another site can read or embed this one."""

LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
PUBLIC_PATHS = frozenset(("/", "/healthz", "/openapi.json"))
"""Paths that need no token: nothing there comes from an index."""
STATIC, DOCUMENTS = "/static/", "/v1/documents/"
ROUTES = PUBLIC_PATHS | {
    "/v1/query",
    "/v1/check-quote",
    "/v1/best-spans",
    "/v1/mine",
    "/v1/indexes",
    "/v1/judgments",
    "/metrics",
    "/mcp",
}

Count = Callable[[str, int, float], None]


class Guard:
    """Wraps an application; `count` gets the route, the status and the seconds of each request."""

    def __init__(self, app: ASGIApp, options: ServeOptions, count: Count) -> None:
        self._app, self._options, self._count = app, options, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            self._check(Headers(scope=scope), scope["path"])
            await self._app(scope, receive, send_with_headers)
        except Problem as problem:
            await build_response(problem)(scope, receive, send_with_headers)
        except Exception as error:
            _log_unexpected(error)
            if not status:
                failure = Problem(500, "the service cannot answer: its log says why")
                await build_response(failure)(scope, receive, send_with_headers)
        seconds = time.perf_counter() - started_at
        route = name_route(scope["path"])
        self._count(route, status, seconds)
        _log.info("%s %s %d in %.0f ms", scope["method"], route, status, seconds * 1000)

    def _check(self, headers: Headers, path: str) -> None:
        """Raise the problem of a request that is for another host, or bears no token."""
        if self._options.token is None:
            name = _host_name(headers.get("host", ""))
            # a name that a stranger's page points at this machine would be of that page's site
            if name not in LOOPBACK_NAMES | {self._options.host.lower()}:
                raise Problem(421, f"this service does not answer to the host {name[:80]!r}")
            return
        if path in PUBLIC_PATHS or path.startswith(STATIC):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        expected = self._options.token.reveal()
        is_right = hmac.compare_digest(token.strip().encode(), expected.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise Problem(
                401,
                "the token is missing or wrong: send Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )


def name_route(path: str) -> str:
    """Return the route of a path, without the id of a document."""
    if path in ROUTES:
        return path
    if path.startswith(DOCUMENTS):
        return f"{DOCUMENTS}{{id}}"
    return STATIC if path.startswith(STATIC) else "other"


def _host_name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    name = host.lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


def _log_unexpected(error: Exception) -> None:
    """Log where an error was raised, but not its message, which may quote a text."""
    places = "".join(traceback.format_tb(error.__traceback__)[-4:])
    _log.error("a request failed by an unexpected %s:\n%s", type(error).__name__, places.rstrip())
