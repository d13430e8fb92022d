"""The rejects file: every refused line with its number and the reason.

Nothing is lost, and all of it can be tried again (``--retry``).
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
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.types import SourceLine


def default_rejects_path(index: str, shard: Shard = ALL_DOCUMENTS) -> Path:
    """Return where refused documents of `index` go if no file is named; each shard has its own."""
    return Path(f"{shard.add_suffix(index)}.rejected.jsonl")


class Rejects:
    """Writes refused lines to `path`, which the first of a run overwrites.

    Several threads may use it. `carried` says that the file holds what an earlier run refused, and
    that this run adds to it.
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
        """Write `line` and the reason why it is refused.

        Bytes that are not UTF-8 are written as lone surrogates (``surrogateescape``), from which
        they can be restored. ``fault`` in an entry says that `document` is not the whole line.
        IndexStoreError is raised if it cannot be written: nothing is refused unseen.
        """
        raw = line.data.decode("utf-8", "surrogateescape").rstrip("\r\n")
        entry = {"source": line.source, "line": line.number, "reason": reason, "document": raw}
        if line.fault:
            entry["fault"] = True
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
        """Return how many bytes were written and their digest, once they are on the disk."""
        with self._lock, self._translate_write_errors():
            if self._file:
                flush_to_disk(self._file)
            return self._bytes, self._digest.hexdigest()

    def carry(self, size: int, digest: str, is_done: Callable[[str, int], bool]) -> bool:
        """Go on with the file of an earlier run, whose `state` was `size` and `digest`.

        Entries whose source and line are not done are left out: those lines are read again.

        Returns:
            False if the file is not the one that the earlier run wrote.
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
        """Return what was refused since the last call, without the content of the documents."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def _open(self) -> IO[bytes]:
        try:
            return self.path.open("wb")
        except OSError as error:
            raise UsageError(
                f"refused documents cannot be written to {self.path} ({error.strerror}): "
                "name another file for them"
            ) from error

    @contextmanager
    def _translate_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise IndexStoreError(
                f"refused documents cannot be written to {self.path} ({error.strerror}). "
                "What was committed is safe: free space and run the same command again"
            ) from error

    def close(self) -> None:
        """Close the file, if there was anything to write."""
        if self._file:
            self._file.close()


def parse_entry(data: bytes) -> dict[str, Any] | None:
    """Return the entry in a line of a rejects file, None if the line is not a valid entry.

    The last line of a process that was killed may be cut off.
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
    """Wait until the disk has what was written to `file`."""
    file.flush()
    os.fsync(file.fileno())
