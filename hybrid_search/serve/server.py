"""Run the service until a signal ends it: uvicorn at one socket, and a client that is closed."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from hybrid_search.async_client import THREADS, AsyncClient
from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.serve.options import ServeOptions

WAITING_CONNECTIONS = 1_000
KEEP_ALIVE = 30
"""Seconds that an idle connection stays open."""

_log = logging.getLogger(__name__)


def serve(options: ServeOptions, place: Mapping[str, Any], announce: Callable[[str], None]) -> None:
    """Answer requests until SIGTERM or SIGINT, then finish the running ones.

    Args:
        options: The address and the limits.
        place: The parameters of `hybrid_search.connect`. No answer tells where the indexes are.
        announce: Called with the URL as soon as requests are answered.

    UsageError is raised if nothing can listen at the address.
    """
    from hybrid_search.serve.app import Service  # here, as the agents' server has no metrics

    @asynccontextmanager
    async def open_app(client: AsyncClient) -> AsyncIterator[ASGIApp]:
        yield Service(client, options, find_location(place)).build_app()

    run_app(options, place, open_app, announce)


def find_location(place: Mapping[str, Any]) -> str:
    """Return the location of the indexes, without the scheme."""
    return settings(place["url"]).url.partition(":")[2]


def open_client(options: ServeOptions, place: Mapping[str, Any]) -> AsyncClient:
    """Return the client of a service."""
    return AsyncClient(**place, threads=min(THREADS, options.queries))


def run_app(
    options: ServeOptions,
    place: Mapping[str, Any],
    open_app: Callable[[AsyncClient], AbstractAsyncContextManager[ASGIApp]],
    announce: Callable[[str], None],
) -> None:
    """Run an application over one client until SIGTERM or SIGINT; parameters as in `serve`.

    `open_app` returns the application over a client; it is closed after the last request.
    """

    async def run() -> None:
        async with open_client(options, place) as client, open_app(client) as app:
            await client.best_spans("ready", "ready")  # loads the model before anybody waits for it
            server = _Server(_configure(app, options), announce, _format_url(options, listener))
            await server.serve(sockets=[listener])

    with _open_socket(options) as listener, _end_quietly():
        asyncio.run(run())


def _configure(app: Any, options: ServeOptions) -> uvicorn.Config:
    patient = type("PatientProtocol", (PatientProtocol,), {"seconds": options.timeout})
    return uvicorn.Config(
        app,
        http=patient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, int(options.timeout)),
    )


class PatientProtocol(H11Protocol):
    """A connection that is closed if its next request does not begin within some seconds.

    A request has begun when its head is there; its body has a time of its own.
    """

    seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.seconds, self._close_if_silent)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self.seconds, self._close_if_silent)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class _Server(uvicorn.Server):
    """Tells its URL as soon as it answers, and a signal would end it."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None], url: str) -> None:
        super().__init__(config)
        self._announce, self._url = announce, url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._announce(self._url)


@contextmanager
def _open_socket(options: ServeOptions) -> Iterator[socket.socket]:
    """Yield a socket that listens at the address; raise UsageError if it cannot be opened."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(WAITING_CONNECTIONS)
    except OSError as error:
        raise UsageError(
            f"nothing can be served at {options.host}:{options.port} ({error}): "
            "name another address with --port or --host"
        ) from error
    with listener:
        yield listener


def _format_url(options: ServeOptions, listener: socket.socket) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}"


@contextmanager
def _end_quietly() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the block and nothing else.

    uvicorn handles them while it serves, and raises them again when it has ended.
    """

    def pass_over(_: int, __: FrameType | None) -> None:
        _log.info("stopping")

    signals = (signal.SIGTERM, signal.SIGINT)
    old_handlers = [signal.signal(number, pass_over) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, old_handlers, strict=True):
            signal.signal(number, handler)
