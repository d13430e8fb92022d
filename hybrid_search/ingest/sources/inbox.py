"""A watched folder as source: each file moved into it is ingested, then moved on.

It goes into ``done/``, or into ``failed/`` if a document was refused. A file is read once it stops
changing. If it changes while it is read, it stays and is read again, skipping unchanged documents.
Only regular files are read; symbolic links are not followed.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import REJECTED, remove_earlier
from hybrid_search.ingest.sources.files import UNFINISHED
from hybrid_search.ingest.summary import Summary
from hybrid_search.private_files import create_folder

POLL_SECONDS = 1.0
_log = logging.getLogger(__name__)

IngestFile = Callable[[Path, Path], Summary]
"""Ingests and commits the file at the first path, with refused documents to the second."""


def follow(
    inbox: Inbox,
    ingest: IngestFile,
    should_stop: Callable[[], bool],
    on_ingested: Callable[[Path, Summary], None],
) -> Summary:
    """Ingest new files in `inbox` until `should_stop` returns True.

    `on_ingested` is called with the new path of each file. A file stays for the next run if its
    ingest was interrupted or raised an error, or if it cannot be moved, which raises UsageError. A
    file that changed meanwhile stays for a later pass.

    Returns:
        The sum of the summaries of all files.
    """
    total = Summary()
    while not should_stop():
        for file in inbox.list_waiting():
            summary = ingest(file, remove_earlier(_name_rejects(file)))
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
    """A folder into which files are moved, with subfolders ``done/`` and ``failed/``."""

    folder: Path
    _states: dict[Path, FileState] = field(default_factory=dict)
    _known_links: set[Path] = field(default_factory=set)
    """The files seen in the last pass."""

    def prepare(self) -> None:
        """Create the subfolders; UsageError is raised if that fails."""
        with self._translate_errors("written to"):
            for name in ("done", "failed"):
                create_folder(self.folder / name)

    def list_waiting(self) -> list[Path]:
        """Return the files unchanged since the previous call, oldest first.

        Hidden files, files with a suffix in `UNFINISHED`, and symbolic links are skipped. If the
        folder cannot be read, UsageError is raised.
        """
        earlier = self._states
        with self._translate_errors("read"):
            paths = [path for path in self.folder.iterdir() if not self._is_link(path)]
            states = {path: _read_state(path) for path in paths}
        self._states = {
            path: state
            for path, state in states.items()
            if state and not path.name.startswith(".") and not path.name.endswith(UNFINISHED)
        }
        still = [path for path, state in self._states.items() if earlier.get(path) == state]
        return sorted(still, key=lambda path: (self._states[path][-1], path.name))

    def _is_link(self, path: Path) -> bool:
        """Return whether `path` is a symbolic link, which is logged once."""
        is_link = path.is_symlink()
        if is_link and path not in self._known_links:
            self._known_links.add(path)
            _log.warning(
                "%s is a symbolic link and is left alone: move the file itself into the folder",
                path,
            )
        return is_link

    @contextmanager
    def _translate_errors(self, use: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"--follow {self.folder}: {error.strerror}. Give a folder that can be {use}"
            ) from error

    def has_changed(self, file: Path) -> bool:
        """Return and log whether `file` exists but has changed since it was listed."""
        state = _read_state(file)
        changed = state is not None and state != self._states.get(file)
        if changed:
            _log.warning(
                "%s changed while it was read: it is read again once it stops changing", file
            )
        return changed

    def move_ingested(self, file: Path, *, failed: bool) -> Path:
        """Move `file` and its refused documents; return its path in ``done/`` or ``failed/``."""
        destination = _find_free_path(self.folder / ("failed" if failed else "done"), file.name)
        try:
            if failed:
                _name_rejects(file).replace(f"{destination}{REJECTED}")
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


def _name_rejects(file: Path) -> Path:
    """Return the path for refused documents while `file` is read."""
    return file.with_name(f".{file.name}{REJECTED}")


def _read_state(file: Path) -> FileState | None:
    """Return the state of a regular file, or None if there is none."""
    try:
        found = file.lstat()
    except FileNotFoundError:
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_ino, found.st_size, found.st_mtime_ns) if is_file else None


def _find_free_path(folder: Path, name: str) -> Path:
    """Return a new path in `folder`: ``calls-2.jsonl`` for the second ``calls.jsonl``."""
    path = folder / name
    stem, dot, extension = name.partition(".")
    number = 1
    while os.path.lexists(path):
        number += 1
        path = folder / f"{stem}-{number}{dot}{extension}"
    return path
