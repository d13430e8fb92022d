"""``--retry``: the documents of a rejects file as the source, with their first source and line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import parse_entry
from hybrid_search.ingest.types import SourceLine


def check(file: Path) -> None:
    """Raise UsageError unless `file` begins as a rejects file does."""
    if not file.is_file():
        raise UsageError(
            f"there is no file {file} of refused documents: "
            "--retry takes one, as in calls.rejected.jsonl"
        )
    with file.open("rb") as stream:
        first_line = stream.readline()
    if first_line.strip() and parse_entry(first_line) is None:
        raise UsageError(
            f"{file} is not a file of refused documents "
            "(their lines have source, line, reason and document): ingest it as a source"
        )


def read(file: Path) -> Iterator[SourceLine]:
    """Yield the refused lines, byte for byte.

    A line that was not whole when it was refused keeps its reason as a fault: it cannot be tried
    again. The same goes for a line of `file` that is not a valid entry.
    """
    with file.open("rb") as stream:
        for number, data in enumerate(stream, 1):
            if data.strip():
                yield _line_from_entry(file, number, data)


def _line_from_entry(file: Path, number: int, data: bytes) -> SourceLine:
    entry = parse_entry(data)
    if entry is None:
        return SourceLine(
            str(file),
            number,
            data,
            "not an entry of a rejects file: its line may have been cut off",
        )
    document = entry["document"].encode("utf-8", "surrogateescape")
    broken = entry.get("fault") or not document.strip()
    return SourceLine(entry["source"], entry["line"], document, entry["reason"] if broken else None)


def make_retry_path(rejects: Path) -> Path:
    """Return where to write documents that are refused again, until all were tried.

    A process that is killed before that leaves the old rejects file as it was.
    """
    path = rejects.with_name(f"{rejects.name}.again")
    path.unlink(missing_ok=True)
    return path


def settle(fresh: Path, rejects: Path, retried: Path) -> None:
    """Put `fresh` in the place of `rejects`, after all documents of `retried` were tried.

    If nothing was refused again, and `rejects` is the file `retried`, it is removed: all documents
    in it are indexed.
    """
    if fresh.exists():
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(rejects)
    elif rejects.exists() and rejects.samefile(retried):
        rejects.unlink()
