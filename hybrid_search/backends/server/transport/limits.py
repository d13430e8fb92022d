"""Limits of one request: the seconds until all of its answer has come, and the answer's bytes.

urllib3 limits each read alone, so that a server which sends a byte now and then would be waited for
without end, and it reads answers of any size into memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from time import monotonic
from typing import Any

from urllib3 import HTTPConnectionPool

from hybrid_search.backends.server.transport.errors import TooLargeError
from hybrid_search.observability.traffic import note_answer

SENT_BYTES = 16 * 1024
"""Bytes that are sent at once: one record of TLS, whose sockets limit the time of each record."""
READ_BYTES = 256 * 1024
"""Bytes that are read, or unpacked from a compressed answer, at once."""

_deadline: ContextVar[float] = ContextVar("deadline")
"""When the request that this thread sends must have its answer, in monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most seconds of a request, from connecting to the last byte, and bytes of its answer.

    The bytes count unpacked, too, if the answer is compressed.
    """

    seconds: float
    size: int


def limit_pool(pool: HTTPConnectionPool) -> None:
    """Make the connections of a pool read each answer before the deadline of its request."""
    open_connection: Any = pool.ConnectionCls

    def open_limited(*args: Any, **options: Any) -> Any:
        connection = open_connection(*args, **options)
        connection.response_class = _open_answer  # where http.client looks for it
        return connection

    pool.ConnectionCls = open_limited  # type: ignore[assignment]


def start_request(body: bytes | None, limits: Limits) -> Iterator[memoryview] | None:
    """Return the parts of a request that is sent from now on, while there is time."""
    _deadline.set(monotonic() + limits.seconds)
    return _cut(body) if body else None


def _cut(body: bytes) -> Iterator[memoryview]:
    for start in range(0, len(body), SENT_BYTES):
        _find_remaining_time()
        yield memoryview(body)[start : start + SENT_BYTES]


def read(answer: Any, limits: Limits) -> bytes:
    """Return the body of an answer of urllib3, unpacked if it is compressed.

    Raises:
        TooLargeError: If it has more bytes, or says so.
    """
    parts, size = [], answer.length_remaining or 0
    if size <= limits.size:
        size = 0
        for part in answer.stream(READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > limits.size:
                break
    if size > limits.size:
        raise TooLargeError(limits.size)
    return b"".join(parts)


def _open_answer(sock: Any, *args: Any, **options: Any) -> HTTPResponse:
    """Return the reader of an answer whose bytes have to come before the deadline."""
    return HTTPResponse(_TimedReader(sock), *args, **options)  # type: ignore[arg-type]


class _TimedReader(io.RawIOBase):
    """Reads the bytes of one answer from a socket until the deadline."""

    def __init__(self, sock: Any) -> None:
        self._sock, self._raw = sock, sock.makefile("rb", buffering=0)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the buffer from which http.client reads, as a socket would."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Return the number of bytes read, waiting for them until the deadline."""
        self._sock.settimeout(_find_remaining_time())
        count: int | None = self._raw.readinto(buffer)
        note_answer(count or 0)
        return count

    def close(self) -> None:
        """Give the socket back; it stays open for the next request."""
        self._raw.close()
        super().close()


def _find_remaining_time() -> float:
    """Return the seconds until the deadline.

    Raises:
        TimeoutError: If it is over.
    """
    remaining = _deadline.get() - monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining
