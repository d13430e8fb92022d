"""A document on its way to a server: its passages are held until the last one has come, so that none is seen without the others."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from hybrid_search.types import Document

HELD_BYTES = 32_000_000
"""What the passages of a draft may take in memory, about 100 of them; what a longer document has beyond them waits in a temporary file."""

NUMBER_BYTES = 32
"""A number of a vector, as Python holds it in a list."""


class Draft:
    """The passages of one version of a document."""

    def __init__(self, document: Document, passages: int) -> None:
        self.document, self.passages = document, passages
        self._held: list[dict[str, Any]] = []
        self._bytes = 0
        self._file: IO[str] | None = None

    def add(self, source: dict[str, Any]) -> None:
        """Take in the next passage."""
        self._bytes += len(source["tokens"]) + sum(NUMBER_BYTES * len(each["vector"]) for each in source["spans"])
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
