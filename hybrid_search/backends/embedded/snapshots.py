"""The latest snapshots of the indexes in one folder, shared by all threads that query them."""

from __future__ import annotations

import threading
from pathlib import Path

from hybrid_search.backends.embedded import head
from hybrid_search.backends.embedded.failures import describe_damage
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.record_reader import META
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.embedded.versions import RECORDS, identify_file
from hybrid_search.errors import DamagedIndexError, IndexMissingError

TRIES = 5
"""How often an index is opened that is replaced at the same moment."""

State = tuple[tuple[int, ...], ...]
"""What changes with each commit of an index."""


class Snapshots:
    """The latest snapshot of each index that was read."""

    def __init__(self) -> None:
        self._latest: dict[Path, tuple[State, Snapshot]] = {}
        self._locks: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def open(self, folder: Path) -> Snapshot:
        """Return the index in `folder` as its last commit left it.

        IndexMissingError is raised if it is not complete, or is deleted meanwhile.

        Raises:
            DamagedIndexError: If it cannot be read.
        """
        with self._lock:
            lock = self._locks.setdefault(folder, threading.Lock())
        with lock:
            for _ in range(TRIES - 1):
                try:
                    return self._open(folder)
                except (DamagedFileError, DamagedIndexError, OSError, ValueError):
                    continue  # it may have been replaced by a new version meanwhile
            try:
                return self._open(folder)
            except DamagedFileError as error:
                raise DamagedIndexError(describe_damage(folder, str(error))) from error

    def _open(self, folder: Path) -> Snapshot:
        latest = self._latest.get(folder)
        if latest and latest[0] == _find_state(folder, latest[1].head):
            return latest[1]
        current = head.read_head(folder)
        if current is None:
            raise IndexMissingError(
                f"index {folder.stem!r} was deleted while it was queried, or its creation was "
                "interrupted: ingest into it again"
            )
        state = _find_state(folder, current)
        earlier = latest[1] if latest and latest[1].head == current else None
        snapshot = Snapshot(folder, current, earlier)
        self._latest[folder] = state, snapshot
        return snapshot

    def close(self, folder: Path | None = None) -> None:
        """Let go of one index, or of all."""
        if folder is None:
            self._latest.clear()
        else:
            self._latest.pop(folder, None)


def _find_state(folder: Path, current: Head) -> State:
    """Return what changes with each commit of an index that has this head."""
    records = current.version_folder(folder) / RECORDS
    return _identify(folder / head.NAME), _identify(records / META)


def _identify(path: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file; nothing if it is missing."""
    try:
        return identify_file(path)
    except FileNotFoundError:
        return ()
