"""A document on its way to a server: its passages are held until the last one has come, so that
none is seen without the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from hybrid_search.text.types import Document

HELD_BYTES = 32_000_000
"""What the passages of a draft may take in memory, about 500 of them; what a longer document has
beyond them waits in a temporary file.
"""


class DocumentBuffer:
    """The passages of one version of a document, each a line of JSON."""

    def __init__(self, document: Document, passages: int) -> None:
        self.document, self.passages = document, passages
        self._sources: list[bytes] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def add(self, source: bytes) -> None:
        """Take in the next passage."""
        self._bytes += len(source)
        if self._bytes <= HELD_BYTES:
            self._sources.append(source)
            return
        self._file = self._file or tempfile.TemporaryFile()  # closed with the draft  # noqa: SIM115
        self._file.write(source + b"\n")

    def __iter__(self) -> Iterator[bytes]:
        """The passages, in order."""
        yield from self._sources
        if self._file:
            self._file.seek(0)
            yield from map(bytes.rstrip, self._file)

    def close(self) -> None:
        """Forget the passages."""
        self._sources = []
        if self._file:
            self._file.close()
