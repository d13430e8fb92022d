"""A document on its way to a server: its passages are held until the last one has come, so that none is seen without the others."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from hybrid_search.types import Document

HELD_BYTES = 4_000_000
"""Of token codes and vectors that a draft keeps in memory; what a longer document has beyond them waits in a temporary file."""


class Draft:
    """The passages of one version of a document."""

    def __init__(self, document: Document, passages: int) -> None:
        self.document, self.passages = document, passages
        self._held: list[dict[str, Any]] = []
        self._bytes = 0
        self._file: IO[str] | None = None

    def add(self, source: dict[str, Any]) -> None:
        """Take in the next passage."""
        self._bytes += len(source["tokens"])
        if self._bytes <= HELD_BYTES:
            self._held.append(source)
            return
        self._file = self._file or tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 # closed with the draft
        self._file.write(json.dumps(source) + "\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The passages, in order."""
        yield from self._held
        if self._file:
            self._file.seek(0)
            yield from map(json.loads, self._file)

    def close(self) -> None:
        """Forget the passages."""
        self._held = []
        if self._file:
            self._file.close()
