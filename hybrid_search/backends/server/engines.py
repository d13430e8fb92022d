"""A connection by its address: to the engine that the address names, else to the one that answers there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from hybrid_search.access import Access
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Asking, Body, Engine, Outcome, Server
from hybrid_search.backends.server.connection import told, warn


def connect(address: Address, access: Access) -> Server:
    """The server at `address`. Nothing is sent before something is asked of it, not even which engine it is."""
    warn(address, access)
    return Asked(address, access) if address.engine is None else _named(address.engine, address, access)


class Asked:
    """A `Server` that finds out at its first use which engine answers, and then is a connection to that one."""

    def __init__(self, address: Address, access: Access) -> None:
        self._address = address
        self._access = access
        self._lock = threading.Lock()
        self._server: Server = _named("opensearch", address, access)  # its client speaks well enough to both to ask
        self._known = False

    @property
    def engine(self) -> Engine:
        """Which it is. Asks the server once. Raises ServerError."""
        return self._found().engine

    @property
    def version(self) -> tuple[int, int, int]:
        """See `Server.version`."""
        return self._found().version

    def request(self, method: str, path: str, **asked: Unpack[Asking]) -> Any:
        """See `Server.request`."""
        return self._found().request(method, path, **asked)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """See `Server.bulk`."""
        return self._found().bulk(actions)

    def close(self) -> None:
        """See `Server.close`."""
        self._server.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Asked({str(self._address)!r}, {self._access.who})"

    def _found(self) -> Server:
        with self._lock:
            if not self._known:
                engine, _ = told(self._server.request("GET", "/"), self._address)
                if engine != self._server.engine:
                    self._server.close()
                    self._server = _named(engine, self._address, self._access)
                self._known = True
            return self._server


def _named(engine: Engine, address: Address, access: Access) -> Server:
    if engine == "opensearch":
        from hybrid_search.backends.server import opensearch

        return opensearch.connect(address, access)
    from hybrid_search.backends.server import elasticsearch

    return elasticsearch.connect(address, access)
