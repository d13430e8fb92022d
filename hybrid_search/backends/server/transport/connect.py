"""Connects to the address of a server: to the engine that it names, or that answers there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.base import (
    Body,
    Engine,
    Outcome,
    RequestOptions,
    Server,
)
from hybrid_search.backends.server.transport.connection import parse_hello, warn
from hybrid_search.backends.server.transport.retry import RetryPolicy
from hybrid_search.backends.server.transport.shape import ANYTHING
from hybrid_search.credentials import Access


def connect(address: Address, access: Access) -> Server:
    """Return a connection to the server at `address`.

    Nothing is sent before the first request, not even to detect the engine.
    """
    warn(address, access)
    return (
        DetectedServer(address, access)
        if address.engine is None
        else _connect_engine(address.engine, address, access)
    )


class DetectedServer:
    """A `Server` that detects at its first use which engine answers, and connects to that."""

    def __init__(self, address: Address, access: Access) -> None:
        self._address = address
        self._access = access
        self._lock = threading.Lock()
        # this client can ask either engine which it is
        self._server: Server = _connect_engine("opensearch", address, access)
        self._is_detected = False

    @property
    def engine(self) -> Engine:
        """Return which engine it is; asks the server once."""
        return self._detect().engine

    @property
    def version(self) -> tuple[int, int, int]:
        """See `Server.version`."""
        return self._detect().version

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """See `Server.request`."""
        return self._detect(options.get("policy")).request(method, path, **options)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """See `Server.bulk`."""
        return self._detect().bulk(actions)

    def close(self) -> None:
        """See `Server.close`."""
        self._server.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Asked({str(self._address)!r}, {self._access.identity})"

    def _detect(self, policy: RetryPolicy | None = None) -> Server:
        with self._lock:
            if not self._is_detected:
                engine, _ = parse_hello(
                    self._server.request("GET", "/", policy=policy, read=ANYTHING.read),
                    self._address,
                )
                if engine != self._server.engine:
                    self._server.close()
                    self._server = _connect_engine(engine, self._address, self._access)
                self._is_detected = True
            return self._server


def _connect_engine(engine: Engine, address: Address, access: Access) -> Server:
    if engine == "opensearch":
        from hybrid_search.backends.server.transport import opensearch

        return opensearch.connect(address, access)
    from hybrid_search.backends.server.transport import elasticsearch

    return elasticsearch.connect(address, access)
