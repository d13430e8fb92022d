"""Backends by the scheme of their URL. A backend's module is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_search.access import Access
from hybrid_search.backends.base import Backend
from hybrid_search.backends.options import IndexOptions
from hybrid_search.errors import UsageError

if TYPE_CHECKING:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.base import Server

__all__ = ["BACKENDS", "Backend", "open_backend", "open_server"]

ANYBODY = Access()
"""No login."""


def _embedded(rest: str, _: str, __: Access) -> Backend:
    from hybrid_search.backends.embedded.backend import EmbeddedBackend

    if not rest:
        raise UsageError("embedded: needs a folder, as in embedded:/srv/search")
    return EmbeddedBackend(Path(rest).expanduser())


def _memory(_: str, __: str, ___: Access) -> Backend:
    from hybrid_search.backends.memory import MemoryBackend

    return MemoryBackend()


def _server(rest: str, scheme: str, access: Access) -> ServerBackend:
    from hybrid_search.backends.server.address import Address
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.engines import connect

    address = Address.parse(f"{scheme}:{rest}")
    return ServerBackend(connect(address, access), IndexOptions.parse(address.options), access.patience)


SERVERS = ("opensearch+https", "opensearch+http", "elasticsearch+https", "elasticsearch+http", "https", "http")


BACKENDS: dict[str, Callable[[str, str, Access], Backend]] = {
    "embedded": _embedded,
    "memory": _memory,
    **dict.fromkeys(SERVERS, _server),
}


def open_backend(url: str, access: Access = ANYBODY) -> Backend:
    """The backend that `url` names, reached by `access` if it is a server. Raises UsageError for a scheme that there is none for."""
    scheme, _, rest = url.partition(":")
    if scheme not in BACKENDS:
        raise UsageError(f"cannot open {scheme!r} as a place for indexes: use {', '.join(f'{name}:' for name in BACKENDS)} (as in embedded:PATH)")
    return BACKENDS[scheme](rest, scheme, access)


def open_server(url: str, access: Access = ANYBODY) -> Server:
    """The server that `url` names, for what is no index of ours; one that is away is waited for. Raises UsageError for a URL that names none."""
    from hybrid_search.backends.server.patience import Patient

    scheme, _, rest = url.partition(":")
    if scheme not in SERVERS:
        raise UsageError(f"{scheme}: is no server: an index is read from one, as in --from-url opensearch+https://HOST")
    return Patient(_server(rest, scheme, access).server, access.patience)
