"""A watched folder as the source: each file moved into it is ingested, then moved on.

It goes into ``done/``, or into ``failed/`` if a document was refused. A file is taken when it holds
still, and stays if it changes while it is read: it is then read again, and what is unchanged in it
is skipped. Only regular files are taken, never what a symbolic link leads to.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import REJECTED, translate_write_errors
from hybrid_search.ingest.sources.files import UNFINISHED
from hybrid_search.ingest.summary import Summary
from hybrid_search.private_files import create_folder

POLL_SECONDS = 1.0
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
    moved, which raises UsageError. A file that changed meanwhile stays for a later look.

    Returns:
        The sum of all runs.
    """
    total = Summary()
    while not should_stop():
        for file in inbox.list_waiting():
            summary = ingest(file, inbox.prepare_rejects_path(file))
            was_interrupted = should_stop()
            stays = was_interrupted or inbox.has_changed(file)
            if stays and not was_interrupted:
                summary.failed = 0  # its last line may have been half-written
            destination = file if stays else inbox.move_ingested(file, failed=bool(summary.failed))
            summary.rejected = f"{destination}{REJECTED}" if summary.failed and not stays else None
            total.add(summary)
            on_ingested(destination, summary)
            if was_interrupted:
                break
        else:
            time.sleep(POLL_SECONDS)
    return total


FileState = tuple[int, int, int]
"""Inode, size and time of the last change of a file, in nanoseconds."""


@dataclass(slots=True)
class Inbox:
    """A folder that files are moved into, with ``done/`` and ``failed/`` inside."""

    folder: Path
    _states: dict[str, FileState] = field(default_factory=dict)
    """The files that were there at the last look, by name."""
    _known_links: set[str] = field(default_factory=set)

    def prepare(self) -> None:
        """Make the folders inside. Raises UsageError if they cannot be made."""
        try:
            for name in ("done", "failed"):
                create_folder(self.folder / name)
        except OSError as error:
            raise UsageError(
                f"--follow {self.folder}: {error.strerror}. Give a folder that can be written to"
            ) from error

    def list_waiting(self) -> list[Path]:
        """Return the files that are as they were at the call before, the oldest first.

        Hidden files and those with an ending of `UNFINISHED` are left alone, and so are symbolic
        links, of which the log says so once.

        Raises:
            UsageError: If the folder cannot be read.
        """
        earlier = self._states
        try:
            with os.scandir(self.folder) as entries:
                finished = [entry for entry in entries if _is_finished(entry.name)]
                self._states = dict(self._iterate_states(finished))
        except OSError as error:
            raise UsageError(
                f"--follow {self.folder}: {error.strerror}. Give a folder that can be read"
            ) from error
        still = [name for name, state in self._states.items() if earlier.get(name) == state]
        return [
            self.folder / name for name in sorted(still, key=lambda name: (self._age(name), name))
        ]

    def _age(self, name: str) -> int:
        _, _, modified = self._states[name]
        return modified

    def _iterate_states(
        self, entries: Iterable[os.DirEntry[str]]
    ) -> Iterator[tuple[str, FileState]]:
        for entry in entries:
            if entry.is_symlink():
                self._report_link(entry.name)
            elif entry.is_file() and (state := _read_state(self.folder / entry.name)):
                yield entry.name, state

    def _report_link(self, name: str) -> None:
        if name not in self._known_links:
            self._known_links.add(name)
            _log.warning(
                "%s is a symbolic link and is left alone: move the file itself into the folder",
                self.folder / name,
            )

    def has_changed(self, file: Path) -> bool:
        """Return whether `file` is there, but not as it was listed, and log it if so."""
        state = _read_state(file)
        changed = state is not None and state != self._states.get(file.name)
        if changed:
            _log.warning(
                "%s changed while it was read: it is read again once it stops changing", file
            )
        return changed

    def prepare_rejects_path(self, file: Path) -> Path:
        """Return where refused documents of `file` go while it is read.

        A file that an earlier run left there is removed.
        """
        path = self.folder / f".{file.name}{REJECTED}"
        with translate_write_errors(path):
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


def _read_state(file: Path) -> FileState | None:
    """Return the state of a file, None if it is gone."""
    try:
        stat = file.lstat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _find_free_path(folder: Path, name: str) -> Path:
    """Return a new path in `folder`: ``calls-2.jsonl`` for the second ``calls.jsonl``."""
    stem, dot, extension = name.partition(".")
    names = itertools.chain(
        [name], (f"{stem}-{number}{dot}{extension}" for number in itertools.count(2))
    )
    paths = (folder / candidate for candidate in names)
    return next(path for path in paths if not os.path.lexists(path))
