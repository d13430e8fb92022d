"""The rejects file: every refused line with its number and the reason, and how it is retried.

Nothing is lost: refused lines can be retried (``--retry``), except extremely long ones. Refused
text is written to this file only, and only its owner may read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

from hybrid_search.backends.types import RejectedDocument
from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.file_errors import explain_failure
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.summary import Reason
from hybrid_search.ingest.types import SourceLine
from hybrid_search.private_files import append_to_file, create_file, flush_to_disk, write_all

MAX_DOCUMENT_BYTES = 40 * 1024 * 1024
"""Maximum bytes of the line of an entry: 10 MB of text fit in any usual form."""
EXCERPT_BYTES = 1000
"""Bytes from the start of a longer line that its entry has instead."""
MAX_REASONS = 100
OTHER_REASONS = "other reasons"
"""The label for further reasons, as a server may word each refusal differently."""

TOO_LONG = " (the line is too long for a rejects file: correct it in its source, and ingest that)"
"""Added to the reason if the file has only the start of a line."""

REJECTED = ".rejected.jsonl"
"""The file name suffix of rejects files."""


def default_rejects_path(url: str, index: str, shard: Shard = ALL_DOCUMENTS) -> Path:
    """Return the path of refused documents: in the folder of an embedded index, else here."""
    scheme, _, location = url.partition(":")
    folder = Path(location).expanduser() if scheme == "embedded" else Path()
    return folder / f"{shard.add_suffix(index)}{REJECTED}"


class Rejects:
    """A writer of refused lines to `path`, which the first line of a run overwrites.

    Several threads may use it. `carried` is set if the file has refused lines of an earlier run, to
    which this run appends.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.count, self.carried = path, 0, False
        self.reasons: dict[str, Reason] = {}
        self._notes: list[RejectedDocument] = []
        self._file: FileIO | None = None
        self._bytes, self._digest = 0, hashlib.sha256()
        self._lock = threading.Lock()

    def add(
        self, line: SourceLine, reason: str, detail: str = "", document_id: str | None = None
    ) -> None:
        """Write `line` and the reason for its refusal; only `detail` may quote the line."""
        entry = _build_entry(line, reason, detail, document_id)
        with self._lock:
            self._file = self._file or self._open()
            with translate_write_errors(self.path):
                self._append(self._file, entry)
            self.count += 1
            self._notes.append(RejectedDocument(line.source, line.number, reason, document_id))
            if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
                reason = OTHER_REASONS
            first = Reason(0, f"{line.source}:{line.number}")
            self.reasons[reason] = self.reasons.get(reason, first).plus(1)

    def _append(self, file: FileIO, entry: dict[str, Any]) -> None:
        data = json.dumps(entry).encode() + b"\n"
        write_all(file, data)
        self._bytes += len(data)
        self._digest.update(data)

    def state(self) -> tuple[int, str]:
        """Flush to disk, and return the number of bytes written and their digest."""
        with self._lock, translate_write_errors(self.path):
            if self._file:
                flush_to_disk(self._file)
            return self._bytes, self._digest.hexdigest()

    def carry(self, size: int, digest: str, is_done: Callable[[str, int], bool]) -> bool:
        """Continue the file of an earlier run, whose `state` was `size` and `digest`.

        Entries of lines that are not done are dropped, as these lines are read again.

        Returns:
            False if the file is not the one that the earlier run wrote.
        """
        if not size:
            return True
        earlier = b""
        with suppress(OSError), self.path.open("rb") as written:  # else its lines are read again
            earlier = written.read(size)
        if hashlib.sha256(earlier).hexdigest() != digest:
            return False
        temporary = self.path.with_name(f"{self.path.name}.carried")
        with translate_write_errors(self.path):
            with FileIO(create_file(temporary), "wb") as file:
                for entry in filter(None, map(parse_entry, earlier.splitlines())):
                    if is_done(entry["source"], entry["line"]):
                        self._append(file, entry)
                flush_to_disk(file)
            temporary.replace(self.path)
            self._file = FileIO(append_to_file(self.path), "ab")
            self.carried = self._bytes > 0
        return True

    def notes(self) -> list[RejectedDocument]:
        """Return the refusals since the last call, without document content."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def _open(self) -> FileIO:
        try:
            return FileIO(create_file(self.path), "wb")  # unbuffered, so errors are raised at once
        except OSError as error:
            raise UsageError(
                f"refused documents cannot be written to {self.path} ({error.strerror}): "
                "name another file for them"
            ) from error

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._file:
            with translate_write_errors(self.path):
                self._file.close()


@contextmanager
def translate_write_errors(
    path: Path, content: str = "refused documents", option: str = "--rejects"
) -> Iterator[None]:
    """Translate errors of writing the file `path` to IndexStoreError."""
    try:
        yield
    except OSError as error:
        raise IndexStoreError(
            f"{content} cannot be written to {path} ({error.strerror}). "
            f"What was committed is safe: free space, or name another file with {option}, "
            "and run the same command again"
        ) from error


def _build_entry(
    line: SourceLine, reason: str, detail: str, document_id: str | None
) -> dict[str, Any]:
    """Return the entry for a refused line, from which its bytes can be restored."""
    raw = line.data.rstrip(b"\r\n")
    is_too_long = len(raw) > MAX_DOCUMENT_BYTES
    excerpt = raw[:EXCERPT_BYTES] if is_too_long else raw
    optional = {
        "detail": detail,
        "document_id": document_id,
        "fault": bool(line.fault),  # `document` is not the whole line
        "bytes": len(raw) if is_too_long else None,
    }
    return {
        "source": line.source,
        "line": line.number,
        "reason": reason,
        "document": excerpt.decode("utf-8", "surrogateescape"),
        **{name: value for name, value in optional.items() if value},
    }


def parse_entry(data: bytes) -> dict[str, Any] | None:
    """Return the entry in a line of a rejects file, or None if it is not valid or cut off."""
    try:
        entry = json.loads(data)
        entry["document"].encode("utf-8", "surrogateescape")
        texts = (entry["source"], entry["reason"], entry.get("detail", ""))
        is_valid = isinstance(entry["line"], int) and all(isinstance(text, str) for text in texts)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return entry if is_valid else None


def check_retried(file: Path) -> None:
    """Raise UsageError unless `file` starts like a rejects file."""
    if not file.is_file():
        raise UsageError(
            f"there is no file {file} of refused documents: "
            "--retry takes one, as in calls.rejected.jsonl"
        )
    with translate_read_errors(file), file.open("rb") as stream:
        first_line = stream.readline()
    if first_line.strip() and parse_entry(first_line) is None:
        raise UsageError(
            f"{file} is not a file of refused documents "
            "(their lines have source, line, reason and document): ingest it as a source"
        )


def read_retried(file: Path) -> Iterator[SourceLine]:
    """Yield the refused lines, byte for byte.

    A line that was incomplete when it was refused keeps its reason as a fault, as it cannot be
    retried. So do a line that was too long for the file, and a line of `file` that is not a valid
    entry. Raises UsageError if `file` cannot be read to the end.
    """
    with translate_read_errors(file), file.open("rb") as stream:
        for number, data in enumerate(stream, 1):
            if data.strip():
                yield _line_from_entry(file, number, data)


def translate_read_errors(file: Path) -> AbstractContextManager[None]:
    """Translate errors of reading `file` to UsageError."""
    return explain_failure(
        f"the refused documents in {file} cannot be read", "check the file and its permissions"
    )


def _line_from_entry(file: Path, number: int, data: bytes) -> SourceLine:
    entry = parse_entry(data)
    if entry is None:
        fault = "not an entry of a rejects file: its line may have been cut off"
        return SourceLine(str(file), number, data, fault)
    document = entry["document"].encode("utf-8", "surrogateescape")
    line = SourceLine(entry["source"], entry["line"], document)
    if not (entry.get("fault") or "bytes" in entry or not document.strip()):
        return line
    fault = entry["reason"] + (TOO_LONG if "bytes" in entry else "")
    return replace(line, fault=fault, detail=entry.get("detail", ""))


def remove_earlier(path: Path) -> Path:
    """Return the path of a rejects file, after removing what an earlier run left there."""
    with translate_write_errors(path):
        path.unlink(missing_ok=True)
    return path


def settle_retry(fresh: Path, rejects: Path, retried: Path) -> None:
    """Replace `rejects` with `fresh`, after all documents of `retried` were retried.

    If nothing was refused again and `rejects` is the file `retried`, it is removed, as all its
    documents are indexed.
    """
    with translate_write_errors(rejects):
        if fresh.exists():
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(rejects)
        elif rejects.exists() and rejects.samefile(retried):
            rejects.unlink()
