"""The files of codes of an index: found by the ranges in their names, merged, and swept up.

No list says which files there are. A passage belongs to the file whose range it is in. Files
overlap where a writer was killed between a merge and the removal of what it merged: the widest
range counts. No commit names a file of which no passage is in the records.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybrid_search.backends.embedded import codes_file
from hybrid_search.backends.embedded.codes_file import (
    UNFINISHED,
    CodesBuilder,
    CodesFile,
    merge,
    range_of,
)
from hybrid_search.backends.embedded.passage_documents import Numbers

_log = logging.getLogger(__name__)

FULL_PASSAGES = 8192
"""A file with so many passages, some 50 MB, is not merged with others."""

FEW_FILES = 8
"""So many files that are not full may there be before they are merged."""

STALE_SHARE = 0.5
"""A file is written again if more than this share of its passages is deleted."""


def list_folder(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted; nothing if it is none."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def list_files(folder: Path) -> list[Path]:
    """Return the files of codes that count, in the order of their passages."""
    paths = [path for path in list_folder(folder) if codes_file.NAME.fullmatch(path.name)]
    kept: list[Path] = []
    for path in sorted(paths, key=lambda path: (range_of(path)[0], -range_of(path)[1])):
        if not kept or range_of(path)[1] > range_of(kept[-1])[1]:
            kept.append(path)
    return kept


def find_last(folder: Path) -> int:
    """Return the last passage that a file is for, 0 without a file."""
    return max((range_of(path)[1] for path in list_files(folder)), default=0)


def list_own(folder: Path) -> list[Path]:
    """Return all our files in a folder, unfinished ones among them; it need not be there."""
    return [
        path
        for path in list_folder(folder)
        if (codes_file.NAME.fullmatch(path.name) or path.name == UNFINISHED) and not path.is_dir()
    ]


def sweep(folder: Path, alive: Numbers) -> None:
    """Remove our files that no passage needs; the last one stays, which tells the last number."""
    current = list_files(folder)
    needed = {path for path in current[:-1] if _count_alive(path, alive)} | {*current[-1:]}
    for path in list_own(folder):
        if path not in needed:
            _remove(path)


def _count_alive(path: Path, alive: Numbers) -> int:
    first, last = range_of(path)
    return int(np.searchsorted(alive, last, side="right") - np.searchsorted(alive, first))


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # another process maps it: a later sweep removes it
        _log.debug("%s is still open somewhere", path)


def compact(folder: Path, alive: Numbers, identity: str, stale_share: float = STALE_SHARE) -> None:
    """Merge small files if there are many, and write again those that are mostly deleted.

    Those are of more than `stale_share` deleted passages: with 0 nothing of any of them is left.
    """
    files = [CodesFile.open_or_none(path, identity) for path in list_files(folder)]
    stale = [
        [file]
        for file in files
        if file and len(file) - _count_alive(file.path, alive) > stale_share * len(file)
    ]
    for run in (*stale, _find_run(files)):
        path = merge(run, alive, folder, identity)
        for file in run if path else ():  # the sweep removes what nothing is left of
            if file.path != path:
                _remove(file.path)


def empty_last(folder: Path, alive: Numbers, identity: str) -> None:
    """Take the codes out of the last file, whose name must stay, if no passage in it is alive."""
    for path in list_files(folder)[-1:]:
        file = CodesFile.open_or_none(path, identity)
        if file and len(file) and not _count_alive(path, alive):
            CodesBuilder(folder / UNFINISHED, identity).seal(folder, *range_of(path))


def _find_run(files: Sequence[CodesFile | None]) -> list[CodesFile]:
    """Return the newest files to be merged; an older one if it is no larger than all the newer."""
    run: list[CodesFile] = []
    total = 0
    for file in reversed(files):
        if file is None or len(file) + total > FULL_PASSAGES:
            break
        if len(run) >= FEW_FILES and len(file) > total:
            break
        run.insert(0, file)
        total += len(file)
    return run if len(run) > FEW_FILES else []
