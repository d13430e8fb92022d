"""Encoding detection by the start of a source, and recoding to UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

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
"""The encodings to guess from: those that spreadsheets write on common systems."""

NAMES = {WINDOWS_1252: "Windows-1252", "cp1250": "Windows-1250", "cp1251": "Windows-1251"}
MAIL = b"From "
"""The start of an mbox, whose mails declare their encodings."""


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_DAMAGED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The encoding of a source, by its Python name, and whether it was guessed."""

    name: str
    is_guessed: bool = False

    @property
    def is_utf8(self) -> bool:
        """Return whether the bytes can be read as they are."""
        return self.name == "utf-8"

    @property
    def is_for_json(self) -> bool:
        """Return whether JSON may have this encoding: JSON is Unicode, so guesses do not count."""
        return not self.is_guessed or self.name.startswith("utf-16")

    def __str__(self) -> str:
        return NAMES.get(self.name, self.name.upper())


UTF8 = TextEncoding("utf-8")


def recognise_encoding(head: bytes) -> TextEncoding:
    """Return the encoding of a text that starts with `head`."""
    marked = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    if marked:
        return TextEncoding(marked)
    if b"\0" in head:
        return _recognise_unmarked_utf16(head)
    return UTF8 if _is_utf8(head) or head.startswith(MAIL) else _guess(head)


def _is_utf8(head: bytes) -> bool:
    """Return whether `head` is UTF-8, except for a few damaged bytes."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)
    damaged = len(_DAMAGED.findall(text))
    return damaged == 0 or damaged < len(_NOT_ASCII.findall(text)) - damaged


def _recognise_unmarked_utf16(head: bytes) -> TextEncoding:
    """Return UTF-16 for a text with a NUL next to each ASCII character, else UTF-8."""
    little, big = head[1::2].count(0), head[0::2].count(0)
    fewer, more = sorted((little / len(head), big / len(head)))
    if more < 0.3 or fewer > 0.02:
        return UTF8
    return TextEncoding("utf-16-le" if little > big else "utf-16-be", is_guessed=True)


def _guess(head: bytes) -> TextEncoding:
    """Return the likeliest of the single-byte and double-byte encodings.

    Several often fit a short text; then the result is Windows-1252, by far the most frequent.
    """
    from charset_normalizer import from_bytes

    matches = from_bytes(head, cp_isolation=list(CANDIDATES))
    best = matches.best()
    if best is None or any(match.encoding == WINDOWS_1252 for match in matches):
        return TextEncoding(WINDOWS_1252, is_guessed=True)
    is_same = str(best) == head.decode(WINDOWS_1252, "replace")
    return TextEncoding(WINDOWS_1252 if is_same else best.encoding, is_guessed=True)


def as_utf8(stream: BinaryIO, encoding: TextEncoding) -> BinaryIO:
    """Return `stream` in UTF-8 without a byte order mark."""
    if encoding.is_utf8:
        return stream
    raw = cast("io.RawIOBase", _Recoder(stream, encoding.name))
    return cast("BinaryIO", io.BufferedReader(raw, io.DEFAULT_BUFFER_SIZE * 8))


def decode_head(head: bytes, encoding: TextEncoding) -> bytes:
    """Return the start of a source in UTF-8, without a truncated character at the end."""
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    return decoder.decode(head).encode() if not encoding.is_utf8 else head


class _Recoder(io.RawIOBase):
    """A stream that recodes text to UTF-8; undecodable bytes become U+FFFD."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._stream, self._pending = stream, memoryview(b"")
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._pending and not self._is_over:
            data = cast("Any", self._stream).read1(io.DEFAULT_BUFFER_SIZE * 8)
            self._is_over = not data
            self._pending = memoryview(self._decoder.decode(data, self._is_over).encode())
        size = min(len(buffer), len(self._pending))
        buffer[:size], self._pending = self._pending[:size], self._pending[size:]
        return size
