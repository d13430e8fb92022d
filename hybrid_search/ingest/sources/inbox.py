"""A watched folder as the source: each file moved into it is ingested, then moved on.

It goes into ``done/``, or into ``failed/`` if a document was refused.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.ingest.summary import Summary

POLL_SECONDS = 1.0
UNFINISHED = (".tmp", ".part")
"""Endings of files that are still being written."""

REJECTED = ".rejected.jsonl"
"""Added to the name of a file for its refused documents."""

_log = logging.getLogger(__name__)

IngestFile = Callable[[Path, Path], Summary]
"""Ingests the file of the first path, refused documents into that of the second.

Returns when all of it is committed.
"""


def follow(
    inbox: Inbox,
    ingest: IngestFile,
    should_stop: Callable[[], bool],
    on_ingested: Callable[[Path, Summary], None],
) -> Summary:
    """Ingest the files that come into `inbox` until `should_stop` says so.

    `on_ingested` is called with the place that each file was moved to. A file that was interrupted
    stays for the next run, and so does one whose `ingest` raises an error, and one that cannot be
    moved, which raises UsageError.

    Returns:
        The sum of all runs.
    """
    total = Summary()
    while not should_stop():
        for file in inbox.list_waiting():
            summary = ingest(file, inbox.prepare_rejects_path(file))
            was_interrupted = should_stop()
            destination = (
                file if was_interrupted else inbox.move_ingested(file, failed=bool(summary.failed))
            )
            summary.rejected = (
                f"{destination}{REJECTED}" if summary.failed and not was_interrupted else None
            )
            total.add(summary)
            on_ingested(destination, summary)
            if was_interrupted:
                break
        else:
            time.sleep(POLL_SECONDS)
    return total


@dataclass(frozen=True, slots=True)
class Inbox:
    """A folder that files are moved into, with ``done/`` and ``failed/`` inside."""

    folder: Path

    def prepare(self) -> None:
        """Make the folders inside. Raises UsageError if they cannot be made."""
        try:
            for name in ("done", "failed"):
                (self.folder / name).mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"--follow {self.folder}: {error.strerror}. Give a folder that can be written to"
            ) from error

    def list_waiting(self) -> list[Path]:
        """Return the files to ingest, the oldest first.

        Hidden files and those with an ending of `UNFINISHED` are left alone.

        Raises:
            UsageError: If the folder cannot be read.
        """
        try:
            with os.scandir(self.folder) as entries:
                files = [
                    (_modification_time(entry), entry.name)
                    for entry in entries
                    if _is_finished(entry.name) and entry.is_file()
                ]
        except OSError as error:
            raise UsageError(
                f"--follow {self.folder}: {error.strerror}. Give a folder that can be read"
            ) from error
        return [self.folder / name for _, name in sorted(files)]

    def prepare_rejects_path(self, file: Path) -> Path:
        """Return where refused documents of `file` go while it is read.

        A file that an earlier run left there is removed.
        """
        path = self.folder / f".{file.name}{REJECTED}"
        path.unlink(missing_ok=True)
        return path

    def move_ingested(self, file: Path, *, failed: bool) -> Path:
        """Move `file` into ``done/`` or ``failed/``, after its refused documents.

        Returns:
            Where the file is now.

        Raises:
            UsageError: If it cannot be moved.
        """
        rejects = self.folder / f".{file.name}{REJECTED}"
        destination = _find_free_path(self.folder / ("failed" if failed else "done"), file.name)
        try:
            if failed:
                rejects.replace(f"{destination}{REJECTED}")
            file.replace(destination)
        except FileNotFoundError:
            _log.warning(
                "%s was ingested, but is no longer there to be moved to %s", file, destination
            )
        except OSError as error:
            raise UsageError(
                f"{file} was ingested, but cannot be moved to {destination}: {error.strerror}"
            ) from error
        return destination


def _is_finished(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(UNFINISHED)


def _modification_time(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_mtime_ns
    except OSError:  # the file is gone: reading it will say so
        return 0


def _find_free_path(folder: Path, name: str) -> Path:
    """Return a new path in `folder`: ``calls-2.jsonl`` for the second ``calls.jsonl``."""
    stem, dot, extension = name.partition(".")
    names = itertools.chain(
        [name], (f"{stem}-{number}{dot}{extension}" for number in itertools.count(2))
    )
    return next(folder / candidate for candidate in names if not (folder / candidate).exists())
