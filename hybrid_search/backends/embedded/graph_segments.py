"""The nearest-neighbour files of an index: sealed HNSW segments of covering windows.

Readers memory-map them. A key is ``passage * 2**SPAN_BITS + number of the window``, so that a hit
gives its passage without a table. A segment contains the passages from `first` to `last`. Newer
passages are the tail, which readers search exactly. A file is named by a number that is never
reused, and its size and SHA-256 are recorded: a file that is missing, outdated or damaged is
recognised before it is opened. usearch itself would follow a damaged link out of the file, and the
system then ends the process. So nothing but `open_graph` opens a file, and no file is ever written
in place.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from hybrid_search.backends.embedded.schema import transaction
from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import IndexStoreError
from hybrid_search.private_files import FOLDER_MODE, create_file
from hybrid_search.system import available_cores, file_digest
from hybrid_search.text import token_codes
from hybrid_search.text.token_codes import quantize
from hybrid_search.text.types import Codes, TokenCodes
from hybrid_search.text.window_policy import window_vectors

SPAN_BITS = 20
CONNECTIVITY = 16
EXPANSION_ADD = 128
EXPANSION_SEARCH = 4096
"""Neighbours examined in a search; `EXPANSION_ADD` is the same for adding a vector.

Transcripts repeat themselves, and a graph of near copies is hard to search. On 52,000 windows of
calls, 99.3% of the exact 100 nearest were among the 800 found with 96 for adding and 2048 for
searching (98.2% with 96 and 256). 256 for adding doubles the build time for 99.9%.
"""

UNFINISHED = "unfinished.tmp"
"""Name of a file that is being written."""

OWN_NAMES = re.compile(rf"\d{{6,}}\.usearch|{re.escape(UNFINISHED)}")
"""The names of our files: nothing else in the folder is ever removed."""

LIBRARY_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, MemoryError)
"""What usearch raises if it cannot read or search a file; its errors have no common base."""

Keys = NDArray[np.uint64]
Graph: TypeAlias = Index

_digests: dict[tuple[int, ...], str] = {}
"""The SHA-256 of files, by what changes with their content: inode, size, and times.

A file of 100 MB takes about 75 ms, so a process reads each file once.
"""


class DamagedSegmentError(Exception):
    """A file is not the one that was written, or usearch cannot use it; the message says why."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed file, the passages `first` to `last` in it, and how to recognise the file.

    `modified` is its time when it was written; only the digest decides.
    """

    number: int
    first: int
    last: int
    vectors: int
    size: int
    modified: int
    sha256: str

    def path(self, folder: Path) -> Path:
        """Return the path of its file."""
        return folder / f"{self.number:06d}.usearch"

    def find_fault(self, folder: Path, *, again: bool = False) -> str | None:
        """Return what is wrong with the file, or None.

        With `again` it is read even if this process has read it before.
        """
        path = self.path(folder)
        try:
            status = path.stat()
        except FileNotFoundError:
            return f"{path} is missing"
        if status.st_size != self.size:
            return f"{path} has {status.st_size} bytes where {self.size} were written"
        if _remember_digest(path, status, again=again) != self.sha256:
            return f"{path} is not the file that was written, or is damaged"
        return None


def _remember_digest(path: Path, status: os.stat_result, *, again: bool = False) -> str:
    """Return the SHA-256 of a file, computed only once as long as its `status` is the same."""
    times = status.st_mtime_ns, status.st_ctime_ns  # nobody can set the second
    identity = (status.st_dev, status.st_ino, status.st_size, *times)
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


def create_graph(dimension: int) -> Index:
    """Return an empty HNSW graph of int8 vectors, compared by cosine."""
    return Index(
        ndim=dimension,
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )


def build_keyed_vectors(passage: int, tokens: TokenCodes, policy: str) -> tuple[Keys, Codes]:
    """Return keys and int8 vectors of the covering windows of a passage."""
    codes, _ = quantize(window_vectors(tokens, policy))
    return np.uint64(passage << SPAN_BITS) + np.arange(len(codes), dtype=np.uint64), codes


def passages_of_keys(keys: Keys) -> NDArray[np.int64]:
    """Return the passage of each key, int64 ``[keys]``."""
    return (keys >> np.uint64(SPAN_BITS)).astype(np.int64)


def list_segments(connection: sqlite3.Connection) -> list[Segment]:
    """Return all segments, ordered by their passages."""
    rows = connection.execute(
        "SELECT segment, first, last, vectors, size, modified, sha256 FROM segments ORDER BY first"
    )
    return [Segment(*row) for row in rows]


def open_graph(segment: Segment, folder: Path, dimension: int, *, mapped: bool = True) -> Index:
    """Return the graph of a segment, ready to be searched, or in memory to be extended.

    Raises:
        DamagedSegmentError: If the file is not the one that was written, or usearch cannot open it.
    """
    if fault := segment.find_fault(folder):
        raise DamagedSegmentError(fault)
    path = segment.path(folder)
    try:
        graph = Index.restore(str(path), view=mapped)
    except LIBRARY_ERRORS as error:
        raise DamagedSegmentError(f"{path} cannot be opened ({error})") from error
    if graph is None or (graph.ndim, len(graph)) != (dimension, segment.vectors):
        raise DamagedSegmentError(
            f"{path} is not a graph of {segment.vectors} vectors with {dimension} numbers each"
        )
    graph.expansion_search = EXPANSION_SEARCH
    return graph


def iterate_stored_vectors(
    connection: sqlite3.Connection,
    first: int,
    last: int,
    spec: IndexSpec,
    report_damage: Callable[[int], None],
) -> Iterator[tuple[Keys, Codes]]:
    """Yield the covering windows of the passages `first` to `last`, computed from their codes.

    `report_damage` is called with each passage whose codes are damaged: it has no windows.
    """
    rows = connection.execute(
        "SELECT passage, data FROM tokens WHERE passage BETWEEN ? AND ? ORDER BY passage",
        (first, last),
    )
    for passage, data in rows:
        tokens = token_codes.read(data)
        if token_codes.is_sound(tokens, spec.dimension):
            yield build_keyed_vectors(passage, tokens, spec.policy)
        else:
            report_damage(passage)


def check_folder(folder: Path) -> None:
    """Check that graphs can be written to `folder`, which need not exist.

    Raises:
        IndexStoreError: If something else is in its place, as a file, a pipe or a link to nothing.
    """
    if not folder.is_dir() and os.path.lexists(folder):
        raise IndexStoreError(
            f"{folder} is not a folder, and the graphs of the index belong in one: move it away, "
            "and run the same command again"
        )


def seal(
    connection: sqlite3.Connection,
    folder: Path,
    graph: Index,
    first: int,
    last: int,
    replaced: Segment | None = None,
) -> Segment:
    """Write `graph` to a new file, then record it, in place of `replaced` if given.

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
        os.close(create_file(unfinished))  # the library would leave its mode to the umask
        graph.save(str(unfinished))
    except (OSError, RuntimeError) as error:  # the library raises nothing more specific
        raise IndexStoreError(
            f"{unfinished}: {error}. "
            "What was committed is safe: free space and run the same command again."
        ) from error
    with unfinished.open("rb+") as file:
        os.fsync(file.fileno())
    with transaction(connection):
        number = connection.execute(
            "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'segments'"
        ).fetchone()[0]
        path = unfinished.replace(folder / f"{number:06d}.usearch")
        status = path.stat()
        digest = _remember_digest(path, status)
        segment = Segment(
            number, first, last, len(graph), status.st_size, status.st_mtime_ns, digest
        )
        connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(segment))
        if replaced:
            connection.execute("DELETE FROM segments WHERE segment = ?", (replaced.number,))
    return segment


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
