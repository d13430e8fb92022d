"""The rejects file: every refused line with its number and the reason, so that nothing is lost and
all can be tried again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hybrid_search.backends.types import RejectedDocument
from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.ingest.types import SourceLine


class Rejects:
    """Writes refused lines to `path`, which is made anew when the first of a run comes.

    May be called from several threads.

    `carried` says that the file holds what an earlier run refused, which this one goes on with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.carried = False
        self._notes: list[RejectedDocument] = []
        self._file: IO[bytes] | None = None
        self._bytes, self._digest = 0, hashlib.sha256()
        self._lock = threading.Lock()

    def add(self, line: SourceLine, reason: str, document_id: str | None = None) -> None:
        """Write `line` and the reason.

        Bytes that are not UTF-8 become lone surrogates, as by ``surrogateescape``, which also gives
        them back.

        ``fault`` says that `document` is not all of the line. Raises IndexStoreError where it
        cannot be written: nothing is refused unseen.
        """
        raw = line.data.decode("utf-8", "surrogateescape").rstrip("\r\n")
        entry = {
            "source": line.source,
            "line": line.number,
            "reason": reason,
            "document": raw,
            **({"fault": True} if line.fault else {}),
        }
        with self._lock:
            self._file = self._file or self._open()
            with self._translate_write_errors():
                self._append(self._file, entry)
                self._file.flush()
            self.count += 1
            self._notes.append(RejectedDocument(line.source, line.number, reason, document_id))

    def _append(self, file: IO[bytes], entry: dict[str, Any]) -> None:
        data = json.dumps(entry).encode() + b"\n"
        file.write(data)
        self._bytes += len(data)
        self._digest.update(data)

    def state(self) -> tuple[int, str]:
        """How many bytes were written by now, and their digest; they are durable then."""
        with self._lock, self._translate_write_errors():
            if self._file:
                flush_to_disk(self._file)
            return self._bytes, self._digest.hexdigest()

    def carry(self, size: int, digest: str, is_done: Callable[[str, int], bool]) -> bool:
        """Go on with the file of an earlier run, whose `state` was that; False where the file is
        another.

        Lines (source and number) that are not `done` are left out: they are read again.
        """
        if not size:
            return True
        earlier = self.path.read_bytes()[:size] if self.path.exists() else b""
        if hashlib.sha256(earlier).hexdigest() != digest:
            return False
        temporary = self.path.with_name(f"{self.path.name}.carried")
        with self._translate_write_errors():
            with temporary.open("wb") as file:
                for entry in filter(None, map(parse_entry, earlier.splitlines())):
                    if is_done(entry["source"], entry["line"]):
                        self._append(file, entry)
                flush_to_disk(file)
            temporary.replace(self.path)
            self._file, self.carried = self.path.open("ab"), self._bytes > 0
        return True

    def notes(self) -> list[RejectedDocument]:
        """What was refused since this was last asked, without what is in it."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def _open(self) -> IO[bytes]:
        try:
            return self.path.open("wb")
        except OSError as error:
            raise UsageError(
                f"refused documents cannot be written to {self.path} ({error.strerror}): name another file for them"
            ) from error

    @contextmanager
    def _translate_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise IndexStoreError(
                f"refused documents cannot be written to {self.path} ({error.strerror}). What was committed is safe: free space and run the same "
                "command again"
            ) from error

    def close(self) -> None:
        """Close the file, if there was anything to write."""
        if self._file:
            self._file.close()


def parse_entry(data: bytes) -> dict[str, Any] | None:
    """A line of a rejects file; None for one that is none, as the last line of a process that was
    killed may be.
    """
    try:
        entry = json.loads(data)
        entry["document"].encode("utf-8", "surrogateescape")
        is_valid = (
            isinstance(entry["source"], str)
            and isinstance(entry["line"], int)
            and isinstance(entry["reason"], str)
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return entry if is_valid else None


def flush_to_disk(file: IO[Any]) -> None:
    """Let the disk have what was written to `file`."""
    file.flush()
    os.fsync(file.fileno())
