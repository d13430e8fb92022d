"""The nearest-neighbour files of an index: sealed HNSW segments of covering windows.

Readers memory-map them. A key is ``passage * 2**SPAN_BITS + number of the window``, so that a hit
gives its passage without a table. A segment contains the passages from `first` to `last`. Newer
passages are the tail, which readers search exactly. A file is named by a number that is never
reused, and its size, time and SHA-256 are recorded: a file that is missing, outdated or damaged is
recognised before it is mapped.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from hybrid_search import system
from hybrid_search.backends.embedded.schema import transaction
from hybrid_search.errors import IndexStoreError
from hybrid_search.system import file_digest
from hybrid_search.text.token_codes import from_bytes, quantize
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

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed file, the passages `first` to `last` in it, and how to recognise the file."""

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

    def find_fault(self, folder: Path) -> str | None:
        """Return what is wrong with the file, or None.

        The digest is only computed if the size is right and the time is not.
        """
        path = self.path(folder)
        try:
            status = path.stat()
        except FileNotFoundError:
            return f"{path} is missing"
        if status.st_size != self.size:
            return f"{path} has {status.st_size} bytes where {self.size} were written"
        if status.st_mtime_ns != self.modified and file_digest(path) != self.sha256:
            return f"{path} is not the file that was written, or is damaged"
        return None


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


def open_graph(segment: Segment, folder: Path) -> Index:
    """Return the graph of a segment, memory-mapped and ready to be searched."""
    graph = Index.restore(str(segment.path(folder)), view=True)
    graph.expansion_search = EXPANSION_SEARCH
    return graph


def iterate_stored_vectors(
    connection: sqlite3.Connection, first: int, last: int, policy: str
) -> Iterator[tuple[Keys, Codes]]:
    """Yield the covering windows of the passages `first` to `last`, computed from their codes."""
    rows = connection.execute(
        "SELECT passage, data FROM tokens WHERE passage BETWEEN ? AND ? ORDER BY passage",
        (first, last),
    )
    for passage, data in rows:
        yield build_keyed_vectors(passage, from_bytes(data), policy)


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
    folder.mkdir(mode=system.PRIVATE_FOLDER, exist_ok=True)
    unfinished = folder / "unfinished.tmp"
    try:
        graph.save(str(unfinished))
    except RuntimeError as error:  # the library raises nothing more specific
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
        segment = Segment(
            number, first, last, len(graph), status.st_size, status.st_mtime_ns, file_digest(path)
        )
        connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(segment))
        if replaced:
            connection.execute("DELETE FROM segments WHERE segment = ?", (replaced.number,))
    return segment


def sweep(folder: Path, current_segments: list[Segment]) -> None:
    """Delete the files that no segment refers to.

    If the system forbids deleting a file that another process still maps, a later sweep does it.
    """
    current_paths = {segment.path(folder) for segment in current_segments}
    for path in folder.glob("*") if folder.is_dir() else ():
        if path not in current_paths:
            try:
                path.unlink()
            except PermissionError:
                continue
