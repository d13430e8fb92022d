"""``--retry``: a rejects file as source, with the original source and line of each entry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import parse_entry, translate_write_errors
from hybrid_search.ingest.types import SourceLine

TOO_LONG = " (the line is too long for a rejects file: correct it in its source, and ingest that)"
"""Added to the reason if the file has only the start of a line."""


def check(file: Path) -> None:
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


def read(file: Path) -> Iterator[SourceLine]:
    """Yield the refused lines, byte for byte.

    A line that was incomplete when it was refused keeps its reason as a fault, as it cannot be
    retried. So do a line that was too long for the file, and a line of `file` that is not a valid
    entry. Raises UsageError if `file` cannot be read to the end.
    """
    with translate_read_errors(file), file.open("rb") as stream:
        for number, data in enumerate(stream, 1):
            if data.strip():
                yield _line_from_entry(file, number, data)


@contextmanager
def translate_read_errors(file: Path) -> Iterator[None]:
    """Translate errors of reading `file` to UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the refused documents in {file} cannot be read ({error.strerror}): "
            "check the file and its permissions"
        ) from error


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


def make_retry_path(rejects: Path) -> Path:
    """Return the path for documents that are refused again, until all were retried.

    If the process is killed before that, the old rejects file is unchanged.
    """
    path = rejects.with_name(f"{rejects.name}.again")
    with translate_write_errors(path):
        path.unlink(missing_ok=True)
    return path


def settle(fresh: Path, rejects: Path, retried: Path) -> None:
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
