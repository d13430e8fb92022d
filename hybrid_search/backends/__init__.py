"""Stores of passages: in comes a URL or an encoded passage, out come passages and their contents.

Read `base` first: it is the contract, `Backend` and its `Writer`. `types` holds what they exchange:
`IndexSpec`, `Request`, `FoundPassages`, `StoredPassage`, `PassageContent`. Then `memory`, the
reference; `embedded/`, tantivy and files of codes; `server/`, OpenSearch and Elasticsearch. All of
them share `index_names` and `turn_layout`; servers also use `index_options`.

A backend's module is imported when its scheme is first used. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_search.backends.base import Backend
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server.dialects import SCHEMES
from hybrid_search.credentials import Access
from hybrid_search.errors import SHOWN, UsageError, show_value

if TYPE_CHECKING:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.transport.connection import Server

__all__ = ["Backend", "open_backend", "open_server"]

ANONYMOUS = Access()


def _open_server(location: str, scheme: str, access: Access) -> ServerBackend:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.transport.address import Address
    from hybrid_search.backends.server.transport.connection import connect

    address = Address.parse(f"{scheme}:{location}")
    return ServerBackend(
        connect(address, access), IndexOptions.parse(address.options), access.patience
    )


def open_backend(url: str, access: Access = ANONYMOUS) -> Backend:
    """Return the backend that `url` names; `access` is the login, used by servers only.

    Raises:
        UsageError: If the scheme is unknown, or an embedded store has no folder.
    """
    scheme, _, location = url.partition(":")
    if scheme in SCHEMES:
        return _open_server(location, scheme, access)
    if scheme == "memory":
        from hybrid_search.backends.memory import MemoryBackend

        return MemoryBackend()
    if scheme == "embedded":
        from hybrid_search.backends.embedded.backend import EmbeddedBackend

        if not location:
            raise UsageError("embedded: needs a folder, as in embedded:/srv/search")
        return EmbeddedBackend(Path(location).expanduser())
    if location[:1].isdecimal():  # a port
        raise UsageError(
            f"the URL of a server begins with a scheme, as in https://{scheme[:SHOWN]}:PORT"
        )
    schemes = ", ".join(f"{name}:" for name in ("embedded", "memory", *SCHEMES))
    raise UsageError(
        f"unknown URL scheme {show_value(scheme)}: use {schemes} (as in embedded:PATH)"
    )


def open_server(url: str, access: Access = ANONYMOUS) -> Server:
    """Return the server that `url` names, to read any index; it is waited for while it is away.

    Raises:
        UsageError: If `url` does not name a server.
    """
    scheme, _, location = url.partition(":")
    if scheme not in SCHEMES:
        raise UsageError(
            f"{scheme}: is not the URL of a server: "
            "use one, as in --from-url opensearch+https://HOST"
        )
    return _open_server(location, scheme, access).server.wait(access.patience)
