"""The segments of an index: sealed files with the short codes of many passages.

Readers memory-map them. A segment contains the passages from `first` to `last`; newer passages are
the tail, whose short codes readers make themselves. A file is named by a number that is never
reused, and its size, its SHA-256 and when it was last changed are recorded: a file that is missing,
outdated or changed is recognised before it is used. So nothing but `open_segment` opens a file, and
no file is ever written in place.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from pathlib import Path

from hybrid_search.backends.embedded import schema, segment_file
from hybrid_search.backends.embedded.checksums import is_changed
from hybrid_search.backends.embedded.schema import transaction
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.short_codes import ShortCodes
from hybrid_search.errors import IndexStoreError
from hybrid_search.private_files import FOLDER_MODE, create_file
from hybrid_search.system import available_cores, file_digest
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes

UNFINISHED = "unfinished.tmp"
"""Name of a file that is being written."""

OWN_NAMES = re.compile(rf"\d{{6,}}\.codes|{re.escape(UNFINISHED)}")
"""The names of our files: nothing else is ever removed."""

_digests: dict[tuple[int, ...], str] = {}
"""The SHA-256 of files, by what changes with their content: inode, size, and times.

A file of 100 MB takes about 75 ms, so a process reads each file at most once.
"""


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed file, the passages `first` to `last` in it, and how to recognise the file.

    `changed` is when the file was last changed, see `_read_change_time`. A file that was changed
    then is not read; of any other its digest decides, as after a copy.
    """

    number: int
    first: int
    last: int
    passages: int
    size: int
    changed: int = field(compare=False)  # that of a copy may be recorded meanwhile
    sha256: str

    def path(self, folder: Path) -> Path:
        """Return the path of its file."""
        return folder / f"{self.number:06d}.codes"

    def find_fault(self, folder: Path, *, again: bool = False) -> str | None:
        """Return what is wrong with the file, or None.

        With `again` it is read even if it seems unchanged, or this process has read it before.
        """
        path = self.path(folder)
        try:
            status = path.stat()
        except FileNotFoundError:
            return f"{path} is missing"
        if status.st_size != self.size:
            return f"{path} has {status.st_size} bytes where {self.size} were written"
        is_read = again or _identify(status) in _digests
        if not is_read and 0 < _read_change_time(status) == self.changed:
            return None
        if _remember_digest(path, status, again=again) != self.sha256:
            return f"{path} is not the file that was written, or is damaged"
        return None


def _read_change_time(status: os.stat_result) -> int:
    """Return when a file was last changed, in ns since 1970; 0 on Windows, which does not say.

    Nobody can set this time, unlike that of the last writing.
    """
    return 0 if sys.platform == "win32" else status.st_ctime_ns


def _identify(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes with the content of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _remember_digest(path: Path, status: os.stat_result, *, again: bool = False) -> str:
    """Return the SHA-256 of a file, computed only once as long as its `status` is the same."""
    identity = _identify(status)
    if again or identity not in _digests:
        _digests[identity] = file_digest(path)
    return _digests[identity]


def find_faults(
    segments: Sequence[Segment], folder: Path, *, again: bool = False
) -> dict[Segment, str]:
    """Return what is wrong with the files of `segments`, read on all cores; empty if nothing is."""
    with ThreadPoolExecutor(available_cores()) as pool:
        faults = pool.map(lambda segment: segment.find_fault(folder, again=again), segments)
        return {segment: fault for segment, fault in zip(segments, faults, strict=True) if fault}


def list_segments(connection: sqlite3.Connection) -> list[Segment]:
    """Return all segments, ordered by their passages."""
    rows = connection.execute(
        "SELECT segment, first, last, passages, size, changed, sha256 FROM segments ORDER BY first"
    )
    return [Segment(*row) for row in rows]


def open_segment(segment: Segment, folder: Path, *, again: bool = False) -> ShortCodes:
    """Return the short codes of a segment, mapped into memory.

    `again` is that of `Segment.find_fault`.

    Raises:
        DamagedSegmentError: If the file is not the one that was written.
    """
    if fault := segment.find_fault(folder, again=again):
        raise DamagedSegmentError(fault)
    codes = segment_file.read(segment.path(folder))
    if len(codes.passages) != segment.passages:
        raise DamagedSegmentError(
            f"{segment.path(folder)} has {len(codes.passages)} passages where {segment.passages} "
            "were written"
        )
    return codes


def iterate_word_codes(
    connection: sqlite3.Connection,
    first: int,
    last: int,
    dimension: int,
    report_damage: Callable[[int], None],
) -> Iterator[tuple[int, WordCodes]]:
    """Yield the passages `first` to `last` that have words, with their word codes.

    `report_damage` is called with each passage whose codes are damaged.
    """
    column, join = schema.CODES_CHECKSUM
    rows = connection.execute(
        f"SELECT passage, data, {column} FROM tokens {join} "
        "WHERE passage BETWEEN ? AND ? ORDER BY passage",
        (first, last),
    )
    for passage, data, checksum in rows:
        tokens = word_codes.read(data)
        if is_changed(data, checksum) or not word_codes.is_sound(tokens, dimension):
            report_damage(passage)
        elif len(tokens.norms):
            yield passage, tokens


def check_folder(folder: Path) -> None:
    """Check that segments can be written to `folder`, which need not exist.

    Raises:
        IndexStoreError: If something else is in its place, as a file, a pipe or a link to nothing.
    """
    if not folder.is_dir() and os.path.lexists(folder):
        raise IndexStoreError(
            f"{folder} is not a folder, and the segments of the index belong in one: move it away, "
            "and run the same command again"
        )


def seal(
    connection: sqlite3.Connection,
    folder: Path,
    codes: ShortCodes,
    first: int,
    last: int,
    replaced: Segment | None = None,
) -> Segment:
    """Write short codes to a new file, then record it, in place of `replaced` if given.

    If the process is killed in between, it leaves a file that no segment refers to.

    Returns:
        The recorded segment.

    Raises:
        IndexStoreError: If the file cannot be written.
    """
    check_folder(folder)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    unfinished = folder / UNFINISHED
    try:
        os.close(create_file(unfinished))
        segment_file.write(codes, unfinished)
    except OSError as error:
        raise IndexStoreError(
            f"{unfinished}: {error}. "
            "What was committed is safe: free space and run the same command again."
        ) from error
    with transaction(connection):
        number = connection.execute(
            "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'segments'"
        ).fetchone()[0]
        path = unfinished.replace(folder / f"{number:06d}.codes")
        status = path.stat()
        digest, changed = _remember_digest(path, status), _read_change_time(status)
        segment = Segment(number, first, last, len(codes.passages), status.st_size, changed, digest)
        connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(segment))
        if replaced:
            connection.execute("DELETE FROM segments WHERE segment = ?", (replaced.number,))
    return segment


def record_change(connection: sqlite3.Connection, folder: Path, segment: Segment) -> None:
    """Record when the file of a segment was changed, as a copy has another time, if it is sound."""
    path = segment.path(folder)
    status = path.stat()
    changed = _read_change_time(status)
    if changed != segment.changed and _remember_digest(path, status) == segment.sha256:
        row = (changed, segment.number)
        connection.execute("UPDATE segments SET changed = ? WHERE segment = ?", row)


def sweep(folder: Path, current_segments: list[Segment]) -> None:
    """Delete our files that no segment refers to; files with other names are somebody else's.

    If the system forbids deleting a file that another process still maps, a later sweep does it.
    """
    current_paths = {segment.path(folder) for segment in current_segments}
    for path in folder.iterdir() if folder.is_dir() else ():
        if OWN_NAMES.fullmatch(path.name) and path not in current_paths and not path.is_dir():
            try:
                path.unlink()
            except PermissionError:
                continue


def list_files(folder: Path) -> list[Path]:
    """Return our files in a folder; it need not be there."""
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in files if OWN_NAMES.fullmatch(path.name))


def remove_folder(folder: Path) -> str | None:
    """Delete our files, and the folder if it is ours; return what is left of it, if anything is."""
    if not folder.is_dir():
        return None
    sweep(folder, [])
    if folder.is_symlink():
        return f"{folder} is a link that somebody else made"
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        folder.rmdir()
        return None
    return f"{folder} has {len(names)} files that are not the index's ({names[0]!r})"
