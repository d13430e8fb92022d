"""A document on its way to a server: its passages are held until the last one has come, so that none is seen without the others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from hybrid_search.types import Document

HELD_BYTES = 32_000_000
"""What the passages of a draft may take in memory, about 500 of them; what a longer document has beyond them waits in a temporary file."""


class Draft:
    """The passages of one version of a document, each a line of JSON."""

    def __init__(self, document: Document, passages: int) -> None:
        self.document, self.passages = document, passages
        self._held: list[bytes] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def add(self, source: bytes) -> None:
        """Take in the next passage."""
        self._bytes += len(source)
        if self._bytes <= HELD_BYTES:
            self._held.append(source)
            return
        self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115 # closed with the draft
        self._file.write(source + b"\n")

    def __iter__(self) -> Iterator[bytes]:
        """The passages, in order."""
        yield from self._held
        if self._file:
            self._file.seek(0)
            yield from map(bytes.rstrip, self._file)

    def close(self) -> None:
        """Forget the passages."""
        self._held = []
        if self._file:
            self._file.close()
