"""Streams of files and pipes, unpacked and in UTF-8, by a look at their start."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
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

    The stream of a file can be rewound, that of a pipe cannot.
    """
    with _open_stdin() if path == STDIN else Path(path).open("rb") as file:
        can_rewind = path != STDIN and file.seekable()
        magic, stream = _peek(file, lambda head: len(head) >= len(GZIP), can_rewind)
        if magic.startswith(GZIP):
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=stream))
        yield _peek(stream, is_enough, can_rewind)


@contextmanager
def as_file(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield `stream` if it can be rewound fast, else a temporary file with all of it."""
    if stream.seekable() and not isinstance(stream, gzip.GzipFile):
        yield stream
        return
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
    """Return standard input; if it is closed, OSError is raised."""
    if sys.stdin is None:  # closed, e.g. by <&- in a shell
        raise OSError(errno.EBADF, "standard input is closed")
    try:  # a thread that waits in Python's own reader holds a lock that is needed at exit
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


MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks at the start of files."""

WINDOWS_1252 = "cp1252"
CANDIDATES = (
    *(WINDOWS_1252, "cp1250", "cp1251", "cp1253", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
"""The encodings to guess from, which spreadsheets write on common systems."""

MAIL = b"From "
"""The start of an mbox, whose mails declare their encodings."""
CHUNK = 256 * 1024

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_DAMAGED = re.compile("[\udc80-\udcff]")


UTF8 = "utf-8"


def recognise_encoding(head: bytes) -> tuple[str, bool]:
    """Return the encoding of a text that starts with `head`, and whether it is a guess."""
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return name, False
    little, big = head[1::2].count(0), head[0::2].count(0)
    fewer, more = sorted((little, big))
    if more > 0.3 * len(head) and fewer < 0.02 * len(head):  # UTF-16 without a mark
        return "utf-16-le" if little > big else "utf-16-be", True
    is_utf8 = b"\0" in head or head.startswith(MAIL) or _is_utf8(head)
    return (UTF8, False) if is_utf8 else (_guess(head), True)


def _is_utf8(head: bytes) -> bool:
    """Return whether `head` is UTF-8, except for a few damaged bytes."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)
    damaged = len(_DAMAGED.findall(text))
    return damaged == 0 or damaged < len(_NOT_ASCII.findall(text)) - damaged


def _guess(head: bytes) -> str:
    """Return the likeliest of the single-byte and double-byte encodings.

    Several often fit a short text; then the result is Windows-1252, by far the most frequent.
    """
    from charset_normalizer import from_bytes

    matches = from_bytes(head, cp_isolation=list(CANDIDATES))
    best = matches.best()
    if best is None or any(match.encoding == WINDOWS_1252 for match in matches):
        return WINDOWS_1252
    is_same = str(best) == head.decode(WINDOWS_1252, "replace")
    return WINDOWS_1252 if is_same else str(best.encoding)


def decode_head(head: bytes, encoding: str) -> bytes:
    """Return the start of a source in UTF-8, without a truncated character at the end."""
    if encoding == UTF8:
        return head
    return codecs.getincrementaldecoder(encoding)("replace").decode(head).encode()


@contextmanager
def as_utf8(stream: BinaryIO, encoding: str) -> Iterator[BinaryIO]:
    """Yield a text in UTF-8 without a byte order mark; undecodable bytes become U+FFFD.

    Any other encoding is copied to a temporary file.
    """
    if encoding == UTF8:
        yield stream
        return
    with tempfile.TemporaryFile() as file, as_text(stream, "replace", encoding) as text:
        file.writelines(piece.encode() for piece in iter(partial(text.read, CHUNK), ""))
        file.seek(0)
        yield file
