"""Limits of one answer: the seconds until all of it has come, and its bytes, also unpacked.

The client libraries limit each read, so that a server which sends a byte now and then would be
waited for without end, and read answers of any size into memory.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from socket import SocketIO, socket
from time import monotonic
from typing import Any

from hybrid_search.backends.server.transport.errors import TooLargeError
from hybrid_search.credentials import MEGABYTE, Access
from hybrid_search.observability.traffic import note_answer

SENT_BYTES = 16 * 1024
"""Bytes that are sent at once: one record of TLS, whose sockets limit the time of each record."""
UNPACKED_BYTES = 256 * 1024
"""Bytes that are unpacked at once from a compressed answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most seconds of a request, from connecting to the last byte, and bytes of its answer."""

    seconds: float
    size: int

    @classmethod
    def from_access(cls, access: Access) -> Limits:
        """Return the limits that are configured."""
        return cls(access.timeout, int(access.answer_megabytes * MEGABYTE))


@dataclass(frozen=True, slots=True)
class Response:
    """The parts of an answer that the client libraries read."""

    status: int
    headers: Any
    data: bytes


def limit_answers(pool: Any, limits: Limits) -> None:
    """Make every request of a connection pool of urllib3 keep to `limits`."""
    name = "LimitedConnection"
    pool.ConnectionCls = type(name, (_LimitedConnection, pool.ConnectionCls), {"limits": limits})
    open_url = pool.urlopen

    def open_limited(*args: Any, **options: Any) -> Response:
        answer = open_url(*args, preload_content=False, **options)
        try:
            response = Response(answer.status, answer.headers, _read(answer, limits))
            note_answer(answer.tell())
            return response
        except BaseException:
            answer.close()
            raise
        finally:
            answer.release_conn()

    pool.urlopen = open_limited


def _read(answer: Any, limits: Limits) -> bytes:
    """Return the body of an answer, unpacked if it is compressed."""
    if "content-encoding" not in answer.headers:
        return bytes(answer.read())  # its bytes are counted as they arrive
    body = bytearray()
    for part in answer.stream(UNPACKED_BYTES):
        body += part
        if len(body) > limits.size:
            raise TooLargeError(limits.size)
    return bytes(body)


class _LimitedConnection(HTTPConnection):
    """Mix-in for a connection of urllib3: the time of a request is limited as a whole."""

    limits: Limits
    _deadline: float | None = None

    def connect(self) -> None:
        """Connect; the time begins anew."""
        self._deadline = monotonic() + self.limits.seconds
        super().connect()

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request; the time begins, unless it did with connecting."""
        self._deadline = self._deadline or monotonic() + self.limits.seconds
        super().request(*args, **options)

    def send(self, data: Any) -> None:
        """Send a part of a request."""
        if self.sock is None:
            self.connect()
        view = memoryview(data)
        for start in range(0, len(view), SENT_BYTES):
            _limit_time(self.sock, self._deadline)
            super().send(view[start : start + SENT_BYTES])

    def response_class(  # type: ignore[override]
        self, sock: socket, *args: Any, **options: Any
    ) -> HTTPResponse:
        """Return the reader of the answer, which http.client creates by this name."""
        deadline, self._deadline = self._deadline, None
        return _LimitedResponse(_LimitedReader(sock, deadline, self.limits), *args, **options)


class _LimitedResponse(HTTPResponse):
    """An answer whose declared length is checked before it is read."""

    def __init__(self, reader: _LimitedReader, *args: Any, **options: Any) -> None:
        super().__init__(reader, *args, **options)  # type: ignore[arg-type]
        self._limits = reader.limits

    def begin(self) -> None:
        """Read the head of the answer.

        Raises:
            TooLargeError: If its length is over the limit.
        """
        super().begin()
        if (self.length or 0) > self._limits.size:
            raise TooLargeError(self._limits.size)


class _LimitedReader(io.RawIOBase):
    """Reads the bytes of one answer from a socket, before the deadline and up to the limit."""

    def __init__(self, sock: socket, deadline: float | None, limits: Limits) -> None:
        self.limits = limits
        self._sock, self._deadline = sock, deadline
        self._raw: SocketIO = sock.makefile("rb", buffering=0)
        self._bytes = 0

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the buffer from which http.client reads, as a socket would."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Return the number of bytes read, waiting for them until the deadline.

        Raises:
            TooLargeError: If there are more than the limit.
        """
        _limit_time(self._sock, self._deadline)
        count = self._raw.readinto(buffer)
        self._bytes += count or 0
        if self._bytes > self.limits.size:
            raise TooLargeError(self.limits.size)
        return count

    def close(self) -> None:
        """Give the socket back; it stays open for the next request."""
        self._raw.close()
        super().close()


def _limit_time(sock: Any, deadline: float | None) -> None:
    """Let the next operation of a socket end at the deadline.

    Raises:
        TimeoutError: If that is over.
    """
    if deadline is None:
        return
    remaining = deadline - monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    sock.settimeout(remaining)
