"""Byte streams of files and pipes, unpacked, with a look at their start."""

from __future__ import annotations

import errno
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

STDIN = "-"
HEAD_BYTES = 64 * 1024
"""Number of bytes used to recognise a source."""
BUFFER_BYTES = 256 * 1024

GZIP = b"\x1f\x8b"

IsEnough = Callable[[bytes], bool]
"""Returns whether these bytes suffice to recognise a source, as a pipe may have no more yet."""


@contextmanager
def open_source(path: str, is_enough: IsEnough) -> Iterator[tuple[bytes, BinaryIO]]:
    """Yield the first bytes of a source, and all of it as a stream; gzip is unpacked.

    The stream of a file can be rewound, that of a pipe cannot. Raises OSError if the source cannot
    be opened.
    """
    with _open_stdin() if path == STDIN else Path(path).open("rb") as file:
        can_rewind = path != STDIN and file.seekable()
        magic, stream = _peek(file, lambda head: len(head) >= len(GZIP), can_rewind)
        if magic.startswith(GZIP):
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=stream))
        yield _peek(stream, is_enough, can_rewind)


@contextmanager
def as_file(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a temporary file with all of `stream`."""
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        yield file


@contextmanager
def as_text(
    file: BinaryIO, errors: str = "surrogateescape", encoding: str = "utf-8"
) -> Iterator[TextIO]:
    """Yield the text of `file` with its line ends as they are; `file` stays open."""
    text = io.TextIOWrapper(file, encoding, errors, newline="")
    try:
        yield text
    finally:
        if not file.closed:
            text.detach()


def _open_stdin() -> AbstractContextManager[BinaryIO]:
    """Return standard input, reopened for a thread that may still wait for it at exit.

    A thread that waits in Python's own reader holds a lock that the interpreter needs at exit.

    Raises:
        OSError: If it is closed.
    """
    if sys.stdin is None:  # closed, e.g. by <&- in a shell
        raise OSError(errno.EBADF, "standard input is closed")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # in a test, standard input is not a file
        return nullcontext(sys.stdin.buffer)


def _peek(stream: BinaryIO, is_enough: IsEnough, can_rewind: bool) -> tuple[bytes, BinaryIO]:
    """Return the start of `stream`, and a stream that includes it.

    An error after the first bytes is left to the reader, which gets what was read before it.
    """
    head, error = b"", None
    try:
        while len(head) < HEAD_BYTES and not (head and is_enough(head)):
            data = cast("Any", stream).read1(HEAD_BYTES - len(head))
            if not data:
                break
            head += data
    except (OSError, EOFError, zlib.error) as damage:
        error = damage
    if can_rewind:
        stream.seek(0)
        return head, stream
    replay = cast("io.RawIOBase", _Replay(head, stream, error))
    return head, cast("BinaryIO", io.BufferedReader(replay, BUFFER_BYTES))


class _Replay(io.RawIOBase):
    """A stream that replays bytes already read from it."""

    def __init__(self, head: bytes, rest: BinaryIO, error: Exception | None) -> None:
        super().__init__()
        self._head, self._rest, self._error = memoryview(head), rest, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            size = min(len(buffer), len(self._head))
            buffer[:size], self._head = self._head[:size], self._head[size:]
            return size
        if self._error:
            raise self._error
        return int(cast("Any", self._rest).readinto1(buffer))
