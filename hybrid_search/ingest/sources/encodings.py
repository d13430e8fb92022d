"""Encoding detection by the start of a source, and recoding to UTF-8."""

from __future__ import annotations

import codecs
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from hybrid_search.ingest.sources.streams import as_text

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

MAIL = b"From "
"""The start of an mbox, whose mails declare their encodings."""
CHUNK = 256 * 1024

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_DAMAGED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The encoding of a source, by its Python name, and whether it was guessed."""

    name: str
    is_guessed: bool = False

    def __str__(self) -> str:
        return self.name.upper().replace("CP125", "Windows-125")


UTF8 = TextEncoding("utf-8")


def recognise_encoding(head: bytes) -> TextEncoding:
    """Return the encoding of a text that starts with `head`."""
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return TextEncoding(name)
    is_utf8 = b"\0" in head or head.startswith(MAIL) or _is_utf8(head)
    return UTF8 if is_utf8 else _guess(head)


def _is_utf8(head: bytes) -> bool:
    """Return whether `head` is UTF-8, except for a few damaged bytes."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)
    damaged = len(_DAMAGED.findall(text))
    return damaged == 0 or damaged < len(_NOT_ASCII.findall(text)) - damaged


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


def decode_head(head: bytes, encoding: TextEncoding) -> bytes:
    """Return the start of a source in UTF-8, without a truncated character at the end."""
    if encoding == UTF8:
        return head
    return codecs.getincrementaldecoder(encoding.name)("replace").decode(head).encode()


@contextmanager
def as_utf8(stream: BinaryIO, encoding: TextEncoding) -> Iterator[BinaryIO]:
    """Yield a text in UTF-8 without a byte order mark; undecodable bytes become U+FFFD.

    Any other encoding is copied to a temporary file.
    """
    if encoding == UTF8:
        yield stream
        return
    with tempfile.TemporaryFile() as file, as_text(stream, "replace", encoding.name) as text:
        file.writelines(piece.encode() for piece in iter(partial(text.read, CHUNK), ""))
        file.seek(0)
        yield file
