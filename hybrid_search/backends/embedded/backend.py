"""The embedded backend: an index is one SQLite file, with its graphs in a folder beside it.

Many processes may read while one writes.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends import index_names
from hybrid_search.backends.embedded import bm25, scan, schema, sql
from hybrid_search.backends.embedded.graph_reader import GraphReader
from hybrid_search.backends.embedded.writer import EmbeddedWriter
from hybrid_search.backends.types import (
    Candidates,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Request,
    StoredPassage,
    check_spec,
)
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.text.filters import Condition, Scalar
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.token_codes import best_passages, from_bytes
from hybrid_search.text.types import TokenCodes

EXACT_PASSAGES = 2000
"""If a filter leaves at most so many passages, all their spans are scored.

That takes about 0.1 s, and no passage can be missed.
"""

CANDIDATES = 2000
"""How many passages the covering windows propose; all spans of these are then scored.

More of them raise recall as more covering windows (`text.window_policy`) would, for a fraction of
the space and of the build time. Share of the exact ten best on calls_sgd: .930 with 1,000 of them
(and graphs searched for 2,048 windows), .957 with 2,000 (and 4,096).
"""

FILTERED = 3
"""Under a filter at least so many times the request's `window` of passages are scored exactly."""


@dataclass(slots=True, eq=False)
class _Reader:
    """An index that is open for queries.

    `matches` is the latest BM25 list with its cache key: finding and completing candidates both
    need it. `file` is the identity of the SQLite file: if another process drops the index and
    creates it again, an open connection would still show the old one.
    """

    connection: sqlite3.Connection
    spec: IndexSpec
    graph_reader: GraphReader
    file: tuple[int, int]
    matches: tuple[object, bm25.Matches] | None = None


class EmbeddedBackend:
    """Indexes in `folder`: NAME.sqlite and NAME.spans/.

    Safe to use from several threads, one query at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[str, _Reader] = {}
        self._lock = threading.RLock()

    def writer(self, index: str, spec: IndexSpec) -> EmbeddedWriter:
        """Open `index` for writing; create it if it does not exist."""
        path = self._path(index)
        with schema.translate_errors(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = schema.WriterLock(path.with_suffix(".lock"), index)
            try:
                self._create_tables(index, spec)
                return EmbeddedWriter(path, self._graphs(index), spec, lock)
            except BaseException:
                lock.release()
                raise

    def _create_tables(self, index: str, spec: IndexSpec) -> None:
        connection = schema.connect(self._path(index))
        try:
            connection.executescript(schema.TABLES)
            index_spec = sql.read_spec(connection)
            if index_spec:
                check_spec(index, index_spec, spec)
            else:
                sql.write_spec(connection, spec)
        finally:
            connection.close()

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists.

        Raises:
            UsageError: If there are any options: only servers have them.
        """
        if options:
            raise UsageError(
                f"an embedded index has no {', '.join(options)}: "
                "that is for an index on a server (--url opensearch+https://...)"
            )
        with self.writer(index, spec):
            pass

    def read_head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """Return the spec of `index` and its metadata fields (dotted name -> type)."""
        with self._open_reader(index) as reader:
            return reader.spec, sql.read_fields(reader.connection)

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count what it contains."""
        with self._open_reader(index) as reader:
            return sql.describe_index(reader.connection, reader.spec)

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.sqlite"))

    def iterate_passages(self, index: str) -> Iterator[ListedPassage]:
        """Yield every passage, from a snapshot of the index."""
        path = self._path(index)
        self._check_exists(index)
        with schema.translate_errors(path), closing(schema.connect(path)) as connection:
            yield from scan.iterate_passages(connection, self._graphs(index))

    def find_candidates(self, index: str, request: Request) -> Candidates:
        """Return the best passages of each leg.

        BM25 is computed by FTS5. Spans are found by the graphs, or by scoring all of them if a
        filter leaves few passages.
        """
        with self._open_reader(index) as reader:
            bm25_scores = self._scores(reader, request, request.window) if request.lexical else {}
            span_candidates, method = (
                self._find_by_spans(reader, request) if request.semantic else ({}, "not asked")
            )
            return Candidates(bm25_scores, span_candidates, method)

    def _find_by_spans(
        self, reader: _Reader, request: Request
    ) -> tuple[dict[Key, TokenCodes], str]:
        """Return the passages of the span leg with their codes, and how they were found."""
        connection = reader.connection
        allowed = _allowed_passages(connection, request.conditions) if request.conditions else None
        if allowed is not None and len(allowed) <= EXACT_PASSAGES:
            best = _score_exactly(connection, request, allowed)
            return best, "exact, on what the filter leaves"
        reader.graph_reader.refresh(connection)
        exact_count = _count_to_score(connection, request, allowed)
        usable = np.zeros(0, np.int64)
        for passages in reader.graph_reader.iterate_passages(request.vector, exact_count):
            usable = passages if allowed is None else passages[np.isin(passages, allowed)]
            if len(usable) < exact_count:
                continue
            best = _score_exactly(connection, request, usable[:exact_count])
            # There are fewer than the window if many of the passages in the graphs were deleted.
            if len(best) >= request.window:
                return best, reader.graph_reader.method
        return _score_exactly(connection, request, usable), reader.graph_reader.method

    def complete_candidates(
        self,
        index: str,
        request: Request,
        keys: Sequence[Key],
        candidates: Candidates | None = None,  # noqa: ARG002 (reading it again is cheap)
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and token codes."""
        with self._open_reader(index) as reader:
            return sql.read_passages(reader.connection, keys, self._scores(reader, request))

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        with self._open_reader(index) as reader:
            return sql.read_contents(reader.connection, keys)

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return start and end of the matching words of each passage that has any."""
        with self._open_reader(index) as reader:
            return bm25.find_highlights(reader.connection, request.phrase, keys)

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        with self._open_reader(index) as reader:
            match = bm25.build_match_expression(reader.connection, request.phrase)
            clause, values = sql.build_where(request.conditions)
            filter_clause = f" AND {clause}" if clause else ""
            matching = (
                "SELECT document FROM passages WHERE passage IN "
                f"(SELECT rowid FROM texts WHERE texts MATCH ?){filter_clause}"
            )
            return {
                name: sql.count_facet(reader.connection, name, matching, (match, *values))
                if match
                else {}
                for name in fields
            }

    def _scores(
        self, reader: _Reader, request: Request, limit: int | None = None
    ) -> dict[Key, float]:
        matches = self._matches(reader, request)
        return dict(
            zip(matches.passages[:limit].tolist(), matches.scores[:limit].tolist(), strict=True)
        )

    def _matches(self, reader: _Reader, request: Request) -> bm25.Matches:
        version = reader.connection.execute("PRAGMA data_version").fetchone()[0]
        cache_key = (request.phrase, request.conditions, version)
        if reader.matches is None or reader.matches[0] != cache_key:
            clause, values = sql.build_where(request.conditions)
            filter_clause = (
                f" AND rowid IN (SELECT passage FROM passages WHERE {clause})" if clause else ""
            )
            reader.matches = (
                cache_key,
                bm25.search(reader.connection, request.phrase, filter_clause, tuple(values)),
            )
        return reader.matches[1]

    def drop_index(self, index: str) -> None:
        """Remove `index` and its files; raise IndexBusyError if another process is writing it."""
        path = self._path(index)
        self._check_exists(index)
        lock = schema.WriterLock(path.with_suffix(".lock"), index)
        with self._lock:
            if reader := self._readers.pop(index, None):
                reader.connection.close()
            shutil.rmtree(self._graphs(index), ignore_errors=True)
            for suffix in (".sqlite", ".sqlite-wal", ".sqlite-shm"):
                path.with_suffix(suffix).unlink(missing_ok=True)
        lock.release()
        path.with_suffix(".lock").unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        with self._lock:
            while self._readers:
                self._readers.popitem()[1].connection.close()

    @contextmanager
    def _open_reader(self, index: str) -> Iterator[_Reader]:
        path = self._path(index)
        with self._lock, schema.translate_errors(path):
            self._check_exists(index)
            if index in self._readers and self._readers[index].file != _identity(path):
                self._readers.pop(index).connection.close()
            if index not in self._readers:
                self._readers[index] = self._create_reader(index)
            yield self._readers[index]

    def _create_reader(self, index: str) -> _Reader:
        path = self._path(index)
        file, connection = _identity(path), schema.connect(path, mapped=True)
        spec = sql.read_spec(connection)
        if spec is None:
            connection.close()
            raise IndexMissingError(
                f"the creation of index {index!r} was interrupted: ingest into it to complete it"
            )
        return _Reader(
            connection, spec, GraphReader(self._graphs(index), spec.dimension, spec.policy), file
        )

    def _check_exists(self, index: str) -> None:
        if not self._path(index).is_file():
            existing = list_names(self.list_indexes(), index)
            raise IndexMissingError(
                f"there is no index {index!r} in {self._folder} (indexes there: {existing}). "
                f"Create it: hybrid-search ingest FILE --index {index}"
            )

    def _path(self, index: str) -> Path:
        return self._folder / f"{index_names.check_index_name(index)}.sqlite"

    def _graphs(self, index: str) -> Path:
        return self._folder / f"{index}.spans"


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _allowed_passages(
    connection: sqlite3.Connection, conditions: Sequence[Condition]
) -> NDArray[np.int64]:
    clause, values = sql.build_where(conditions)
    matches = connection.execute(f"SELECT passage FROM passages WHERE {clause}", values).fetchall()
    return np.array([row[0] for row in matches], dtype=np.int64)


def _count_to_score(
    connection: sqlite3.Connection, request: Request, allowed: NDArray[np.int64] | None
) -> int:
    """Return how many passages to score exactly.

    Under a filter it is the share of `CANDIDATES` that the filter leaves, but at least `FILTERED`
    windows.
    """
    if allowed is None:
        return max(CANDIDATES, request.window)
    total = int(connection.execute("SELECT count(*) FROM tokens").fetchone()[0])
    return max(CANDIDATES * len(allowed) // max(total, 1), FILTERED * request.window)


def _score_exactly(
    connection: sqlite3.Connection, request: Request, passages: NDArray[np.int64]
) -> dict[Key, TokenCodes]:
    """Return the best of `passages` by scoring all their spans, with their token codes.

    There are at most `request.window`; deleted passages are left out.
    """
    codes_by_passage = {
        number: from_bytes(data)
        for number, data in sorted(sql.read_codes(connection, passages.tolist()))
    }
    return best_passages(request.vector, codes_by_passage, request.window)
