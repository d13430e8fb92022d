"""The open readers of embedded indexes: a few connections, lent to one call of a query at a time.

SQLite lets many connections read side by side, and releases Python's lock meanwhile; more of them
than there are cores would only wait for each other.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from hybrid_search.backends.embedded import bm25, commits, head, schema
from hybrid_search.backends.embedded.allowed_passages import AllowedPassages
from hybrid_search.backends.embedded.checked_codes import CheckedCodes
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.passage_documents import SharedDocuments
from hybrid_search.backends.embedded.postings import SharedLengths
from hybrid_search.backends.embedded.segment_reader import SharedSegmentReader
from hybrid_search.backends.embedded.term_reader import TermReader
from hybrid_search.backends.types import IndexSpec, Request
from hybrid_search.errors import IndexBusyError, IndexMissingError, IndexStoreError
from hybrid_search.system import available_cores

_log = logging.getLogger(__name__)

MAX_READERS = 8
"""The most connections that read at once."""


@dataclass(slots=True, eq=False)
class Reader:
    """An index that is open for queries.

    `snapshot` tells whether the files are still those that were opened. `matches` is the latest
    BM25 list with its cache key: a query that is repeated, as for its next page, needs it again.
    `segments`, `codes`, `documents` and the lengths of `terms` are shared with the other readers;
    `allowed_passages` is not. `lost` is a warning about commits that are missing.
    """

    connection: sqlite3.Connection
    spec: IndexSpec
    segments: SharedSegmentReader
    terms: TermReader
    codes: CheckedCodes
    documents: SharedDocuments
    has_locks: bool
    snapshot: tuple[int, ...]
    allowed_passages: AllowedPassages = field(default_factory=AllowedPassages)
    matches: tuple[object, bm25.Matches] | None = None
    lost: str | None = None

    def find_allowed_passages(self, request: Request) -> Numbers | None:
        """Return the passages that conditions and speakers leave; None if there are neither."""
        return self.allowed_passages.find(self.connection, request.conditions, request.speakers)

    def find_warnings(self, path: Path) -> list[str]:
        """Return the warning about missing commits, unless they have been written again."""
        if self.lost:
            self.lost = commits.find_lost(path, self.connection)
        return [self.lost] if self.lost else []


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What the readers of one file share; `identity` tells the file from others at its path."""

    identity: tuple[object, ...]
    segments: SharedSegmentReader
    lengths: SharedLengths
    codes: CheckedCodes
    documents: SharedDocuments


class Turns:
    """Lets a limited number of threads in at once, in the order in which they came.

    Calls that end a query go before those that begin one: then the first of many queries is
    answered long before the last, and few of them hold their candidates meanwhile.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._tickets = count()
        self._queue: list[tuple[bool, int, threading.Lock]] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self, *, begins_query: bool) -> Iterator[None]:
        """Wait for a place, and keep it during the block."""
        self._wait(begins_query)
        try:
            yield
        finally:
            self._leave()

    def _wait(self, begins_query: bool) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            heappush(self._queue, (begins_query, next(self._tickets), turn))
        try:
            turn.acquire()
        except BaseException:  # Ctrl-C
            self._give_up(turn)
            raise

    def _give_up(self, turn: threading.Lock) -> None:
        with self._lock:
            waiting = [entry for entry in self._queue if entry[-1] is not turn]
            was_waiting = len(waiting) < len(self._queue)
            self._queue = sorted(waiting)
        if not was_waiting:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            if self._queue:
                heappop(self._queue)[-1].release()
            else:
                self._free += 1


class ReaderPool:
    """Readers of the indexes in one folder.

    `queries` lets in whole queries: what they compute beside reading holds Python's lock, which
    more of them than there are cores would only hand around.
    """

    def __init__(self) -> None:
        self._idle: defaultdict[Path, list[Reader]] = defaultdict(list)
        self._shared: dict[Path, _Shared] = {}
        self._closings = 0
        self._lock = threading.Lock()
        self._turns = Turns(min(available_cores(), MAX_READERS))
        self.queries = Turns(available_cores())

    @contextmanager
    def lend(self, path: Path, segments: Path, *, begins_query: bool = True) -> Iterator[Reader]:
        """Yield a reader of the index at `path`, whose file must be there, to this thread alone.

        Raises:
            IndexBusyError: If the index was written while it was read without SQLite's locks.
        """
        with self._turns.take(begins_query=begins_query):
            closings = self._closings
            reader = self._take_idle(path) or self._open(path, segments)
            try:
                yield reader
            finally:
                is_current = reader.has_locks or _is_current(reader, path)
                self._give_back(path, reader, closings if is_current else -1)
                if not is_current:
                    raise IndexBusyError(
                        f"{path} was written while it was read from a folder that this user may "
                        "not write, where SQLite cannot lock it: run the same query again"
                    )

    def _take_idle(self, path: Path) -> Reader | None:
        """Return the reader that was used last, for the sake of what it remembers."""
        while True:
            with self._lock:
                reader = self._idle[path].pop() if self._idle[path] else None
            if reader is None or _is_current(reader, path):
                return reader
            reader.connection.close()

    def _open(self, path: Path, segments: Path) -> Reader:
        try:
            # before the file is opened: what changes later is then noticed
            snapshots = {locks: schema.snapshot(path, has_locks=locks) for locks in (True, False)}
            mark = commits.read_mark(path.with_suffix(".lock"))
            connection, has_locks = schema.connect_reader(path)
        except (OSError, sqlite3.OperationalError, IndexStoreError) as error:
            if path.exists():
                raise
            raise IndexMissingError(
                f"index {path.stem!r} was deleted while it was queried: ingest into it again"
            ) from error
        try:
            spec = head.read_spec(connection, path)
        except BaseException:
            connection.close()
            raise
        if spec is None:
            connection.close()
            raise IndexMissingError(
                f"the creation of index {path.stem!r} was interrupted: "
                "ingest into it to complete it"
            )
        count = commits.read_count(connection)
        # a file that takes the place of a deleted one may get its inode
        identity = (*snapshots[True], count.identity)
        shared = self._share(
            path,
            _Shared(
                identity,
                SharedSegmentReader(segments, spec),
                SharedLengths(),
                CheckedCodes(),
                SharedDocuments(),
            ),
        )
        reader = Reader(
            connection,
            spec,
            shared.segments,
            TermReader(shared.lengths),
            shared.codes,
            shared.documents,
            has_locks,
            snapshots[has_locks],
        )
        reader.lost = commits.describe_lost(path, mark, count)
        if reader.lost:
            _log.warning("%s", reader.lost)
        return reader

    def _share(self, path: Path, fresh: _Shared) -> _Shared:
        """Return what another reader of the same file shares, else `fresh`."""
        with self._lock:
            shared = self._shared.get(path)
            if shared is None or shared.identity != fresh.identity:
                self._shared[path] = shared = fresh
            return shared

    def _give_back(self, path: Path, reader: Reader, closings: int) -> None:
        """Keep a reader, unless all were closed since their number was `closings`."""
        with self._lock:
            if closings == self._closings:
                self._idle[path].append(reader)
                return
        reader.connection.close()

    def close(self, path: Path | None = None) -> None:
        """Close the readers of one index, or all; those that are lent, when they come back."""
        with self._lock:
            self._closings += 1
            paths = [path] if path else list(self._shared)
            readers = {path: self._idle.pop(path, []) for path in paths}
            for closed_path in paths:
                self._shared.pop(closed_path, None)
        for path, index_readers in readers.items():
            for reader in index_readers:
                reader.connection.close()
            if any(reader.has_locks for reader in index_readers):
                schema.remove_idle_files(path)


def _is_current(reader: Reader, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return reader.snapshot == schema.snapshot(path, has_locks=reader.has_locks)
    return False
