"""Holds the passages of a document until the last has come, so that none is seen without it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from hybrid_search.errors import IndexStoreError
from hybrid_search.text.types import Document

HELD_BYTES = 32_000_000
"""Bytes of passages in memory, about 500 of them. A longer document waits in a temporary file."""


class DocumentBuffer:
    """The passages of one version of a document, each a line of JSON.

    `taken_at` is the time of its first passage, in ISO 8601; all its passages have it.
    """

    def __init__(self, document: Document, passages: int) -> None:
        self.document, self.passages = document, passages
        self.taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        # closed by `close`
        self._file = tempfile.SpooledTemporaryFile(HELD_BYTES)  # noqa: SIM115

    def add(self, source: bytes) -> None:
        """Append the next passage."""
        with _translate_errors():
            self._file.write(source + b"\n")

    def __iter__(self) -> Iterator[bytes]:
        """Yield the passages in order."""
        with _translate_errors():
            self._file.seek(0)
        yield from map(bytes.rstrip, self._file)

    def close(self) -> None:
        """Discard the passages."""
        with suppress(OSError):  # what a full disk refused is not needed any more
            self._file.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IndexStoreError(
            f"the passages of a long document cannot be kept in the temporary folder "
            f"({error.strerror}). What was committed is safe: free space there, or set TMPDIR to "
            "another folder, and run the same command again"
        ) from error
