"""The options of `serve`: its address, its token and its limits."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from hybrid_search.credentials import Secret, is_ascii_word, read_private_text
from hybrid_search.errors import UsageError

HOST, PORT = "127.0.0.1", 8080
QUERIES = 100
"""The number of calls that are answered or wait at once; further ones get status 429."""
TIMEOUT = 30.0
"""Seconds that a request may take to arrive, and its answer to be found."""
BODY_KILOBYTES = 1_000
SHORTEST_TOKEN = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a service, checked when they are made.

    Attributes:
        host: The address to listen at.
        port: The port, 0 for any free one.
        token: The token that a request must bear; needed unless `host` is loopback.
        queries: The number of calls that are answered or wait at once, at least 1.
        timeout: The seconds that a request and its answer may take, each.
        body_kilobytes: The largest body of a request, in thousands of bytes.
        judgments: The file that judgments of spans are added to; None to take none.

    Raises:
        UsageError: If a value is not allowed, or other machines could ask without a token.
    """

    host: str = HOST
    port: int = PORT
    token: Secret | None = None
    queries: int = QUERIES
    timeout: float = TIMEOUT
    body_kilobytes: int = BODY_KILOBYTES
    judgments: Path | None = None

    def __post_init__(self) -> None:
        for name, value in (("queries", self.queries), ("body-kilobytes", self.body_kilobytes)):
            if value < 1:
                raise UsageError(f"--{name} is {value}: it must be at least 1")
        if not 0 < self.timeout < float("inf"):
            raise UsageError(f"--timeout is {self.timeout}: it must be seconds, more than 0")
        if not 0 <= self.port < 2**16:
            raise UsageError(f"--port is {self.port}: it must be from 0 to 65535")
        if self.token is None and not self.is_loopback:
            raise UsageError(
                f"--host is {self.host!r}, where other machines could read every document without "
                "a login: add --token-file FILE, or leave --host out to serve this machine only"
            )

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach the address."""
        import ipaddress

        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def body_bytes(self) -> int:
        """The largest body of a request in bytes."""
        return self.body_kilobytes * 1000


def read_token(file: Path | None) -> Secret | None:
    """Return the token in a file, None without one; raise UsageError if it is too weak."""
    if file is None:
        return None
    token = read_private_text("--token-file", file).strip()
    if len(token) < SHORTEST_TOKEN or not is_ascii_word(token):
        raise UsageError(
            f"--token-file names {str(file)!r}, whose token has {len(token)} characters: it must "
            f"be one word of plain ASCII of at least {SHORTEST_TOKEN}. "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        )
    return Secret(token)
