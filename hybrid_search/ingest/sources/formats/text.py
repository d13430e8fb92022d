"""Plain text: each file is a document; `named_lines` can make turns of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from hybrid_search.errors import InputError
from hybrid_search.ingest.sources.formats.base import Format


def read_text(file: BinaryIO) -> str:
    """Return the text of a file in UTF-8; another encoding raises InputError."""
    data = file.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", f"byte 0x{data[error.start]:02x} at {error.start}") from error


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the only document of a file, as one text."""
    yield {"id": id, "text": read_text(file)}


TEXT = Format("text", lambda _, name: name.lower().endswith((".txt", ".text")), read)
