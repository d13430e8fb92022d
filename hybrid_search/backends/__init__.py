"""Backends by the scheme of their URL. A backend's module is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_search.backends.base import Backend
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.credentials import Access
from hybrid_search.errors import UsageError

if TYPE_CHECKING:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.transport.base import Server

__all__ = ["BACKENDS", "Backend", "open_backend", "open_server"]

ANONYMOUS = Access()
"""No login."""


def _open_embedded(location: str, _: str, __: Access) -> Backend:
    from hybrid_search.backends.embedded.backend import EmbeddedBackend

    if not location:
        raise UsageError("embedded: needs a folder, as in embedded:/srv/search")
    return EmbeddedBackend(Path(location).expanduser())


def _open_memory(_: str, __: str, ___: Access) -> Backend:
    from hybrid_search.backends.memory import MemoryBackend

    return MemoryBackend()


def _open_server(location: str, scheme: str, access: Access) -> ServerBackend:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.transport.address import Address
    from hybrid_search.backends.server.transport.connect import connect

    address = Address.parse(f"{scheme}:{location}")
    return ServerBackend(
        connect(address, access), IndexOptions.parse(address.options), access.patience
    )


SERVERS = (
    "opensearch+https",
    "opensearch+http",
    "elasticsearch+https",
    "elasticsearch+http",
    "https",
    "http",
)


BACKENDS: dict[str, Callable[[str, str, Access], Backend]] = {
    "embedded": _open_embedded,
    "memory": _open_memory,
    **dict.fromkeys(SERVERS, _open_server),
}


def open_backend(url: str, access: Access = ANONYMOUS) -> Backend:
    """The backend that `url` names, reached by `access` if it is a server.

    Raises UsageError for a scheme that there is none for.
    """
    scheme, _, location = url.partition(":")
    if scheme not in BACKENDS:
        raise UsageError(
            f"cannot open {scheme!r} as a place for indexes: use {', '.join(f'{name}:' for name in BACKENDS)} (as in embedded:PATH)"
        )
    return BACKENDS[scheme](location, scheme, access)


def open_server(url: str, access: Access = ANONYMOUS) -> Server:
    """The server that `url` names, for what is no index of ours; one that is away is waited for.

    Raises UsageError for a URL that names none.
    """
    from hybrid_search.backends.server.transport.patience import PatientServer

    scheme, _, location = url.partition(":")
    if scheme not in SERVERS:
        raise UsageError(
            f"{scheme}: is no server: an index is read from one, as in --from-url opensearch+https://HOST"
        )
    return PatientServer(_open_server(location, scheme, access).server, access.patience)
