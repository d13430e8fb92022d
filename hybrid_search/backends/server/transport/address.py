"""The address of a server, from ``opensearch+https://user@host:9200/prefix?shards=2``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from hybrid_search.backends.server.dialects import SCHEMES
from hybrid_search.credentials import refuse_secrets
from hybrid_search.errors import UsageError

PORT = 9200
_EXAMPLE = "as in opensearch+https://host:9200"
_HOST = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True)
class Address:
    """The place of a server; ``str``, safe to show, is without `options` of indexes to create."""

    engine: str | None
    scheme: str
    host: str
    port: int = PORT
    prefix: str = ""
    username: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the address that `url` names.

        Raises:
            UsageError: If the URL is not valid, or holds a secret; no message repeats a secret.
        """
        refuse_secrets(url)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise UsageError(
                f"the URL of a server needs a valid host, and a port from 1 to 65535: {_EXAMPLE}"
            ) from None
        if parts.scheme not in SCHEMES:
            raise UsageError(
                f"a server's URL must begin with one of {', '.join(SCHEMES)}, not with "
                f"{parts.scheme!r}: {_EXAMPLE}"
            )
        engine, _, scheme = parts.scheme.rpartition("+")
        username = unquote(parts.username) if parts.username else None
        return cls(
            engine or None,
            scheme,
            _read_host(parts),
            PORT if port is None else port,
            _read_prefix(parts),
            username,
            _read_options(parts),
        )

    @property
    def is_secure(self) -> bool:
        """Return whether the connection is encrypted."""
        return self.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Return whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")

    def __str__(self) -> str:
        engine = f"{self.engine}+" if self.engine else ""
        user = f"{quote(self.username)}@" if self.username else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{engine}{self.scheme}://{user}{host}:{self.port}{self.prefix}"


def _read_host(parts: SplitResult) -> str:
    if not parts.hostname or not _HOST.fullmatch(parts.hostname):
        raise UsageError(f"the URL of a server needs a host: {_EXAMPLE}")
    if parts.port == 0:
        raise UsageError(f"the port of a server is 0: it must be from 1 to 65535: {_EXAMPLE}")
    return parts.hostname


def _read_prefix(parts: SplitResult) -> str:
    """Return the path before all requests, as behind a gateway: empty, or with a leading slash."""
    if parts.fragment:
        raise UsageError(f"the URL of a server must not have a '#': {_EXAMPLE}")
    return f"/{parts.path.strip('/')}".rstrip("/")


def _read_options(parts: SplitResult) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) < len(pairs):
        raise UsageError("an option is given twice in the URL of a server: remove one")
    return options
