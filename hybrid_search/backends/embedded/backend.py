"""The embedded backend: one SQLite file an index, its graphs in a folder beside it.

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
from hybrid_search.text.token_codes import best_passages, from_bytes
from hybrid_search.text.types import TokenCodes

EXACT_PASSAGES = 2000
"""A filter that leaves so few passages is answered by scoring all their spans: about 0.1 s, and
nothing can be missed.
"""

CANDIDATES = 2000
"""Passages that the covering spans propose and whose every span is then scored. More of them buy
the same recall as more covering spans (`covering`), at a fraction of the space and of the time to
build: of the exact ten best on calls_sgd .930 with 1,000 of them (and graphs searched for 2,048
spans), .957 with 2,000 (and 4,096).
"""

FILTERED = 3
"""Windows of passages that are scored exactly, at least, where a filter holds."""


@dataclass(slots=True, eq=False)
class _Reader:
    """What a process keeps open of an index that it queries.

    `matches` is the last BM25 list, which both round trips of a query need.

    `file` is the identity of the SQLite file: another process may drop an index and make it again,
    and what is open then shows what was.
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
        """Open `index` for writing, and make it if it is not there.

        Raises IndexBusyError, ModelError.
        """
        path = self._path(index)
        with schema.translate_errors(path):
            _make_folder(self._folder)
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
        """Make an empty `index`, if there is none.

        Raises UsageError for any options: those are for servers.
        """
        if options:
            raise UsageError(
                f"an embedded index has no {', '.join(options)}: that is for one on a server (--url opensearch+https://... )"
            )
        with self.writer(index, spec):
            pass

    def read_head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """What `index` was made for, and its metadata fields. Raises IndexMissingError."""
        with self._open_reader(index) as reader:
            return reader.spec, sql.read_fields(reader.connection)

    def describe_index(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        with self._open_reader(index) as reader:
            return sql.describe_index(reader.connection, reader.spec)

    def list_indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.sqlite"))

    def iterate_passages(self, index: str) -> Iterator[ListedPassage]:
        """Every passage, as they are when the walk begins."""
        path = self._path(index)
        self._check_exists(index)
        with schema.translate_errors(path), closing(schema.connect(path)) as connection:
            yield from scan.iterate_passages(connection, self._graphs(index))

    def find_candidates(self, index: str, request: Request) -> Candidates:
        """BM25 by FTS5; spans by the graphs, or by exact scoring where a filter leaves few
        passages.
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
        allowed = (
            _allowed_passages(reader.connection, request.conditions) if request.conditions else None
        )
        if allowed is not None and len(allowed) <= EXACT_PASSAGES:
            return _score_exactly(
                reader.connection, request, allowed
            ), "exact, on what the filter leaves"
        reader.graph_reader.refresh(reader.connection)
        usable, exact_count = (
            np.zeros(0, np.int64),
            _count_to_score(reader.connection, request, allowed),
        )
        for passages in reader.graph_reader.iterate_passages(request.vector, exact_count):
            usable = passages if allowed is None else passages[np.isin(passages, allowed)]
            best = (
                _score_exactly(reader.connection, request, usable[:exact_count])
                if len(usable) >= exact_count
                else {}
            )
            if (
                len(best) >= request.window
            ):  # fewer, where many of the passages that were found are gone
                return best, reader.graph_reader.method
        return _score_exactly(reader.connection, request, usable), reader.graph_reader.method

    def complete_candidates(
        self,
        index: str,
        request: Request,
        keys: Sequence[Key],
        candidates: Candidates | None = None,  # all is at hand  # noqa: ARG002
    ) -> list[StoredPassage]:
        """The passages of `keys` with BM25 and codes, in order; those deleted in between left out."""
        with self._open_reader(index) as reader:
            return sql.read_passages(reader.connection, keys, self._scores(reader, request))

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """What is shown of each passage of `keys` that is there."""
        with self._open_reader(index) as reader:
            return sql.read_contents(reader.connection, keys)

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Start and end of the matching words of each passage of `keys` that has any."""
        with self._open_reader(index) as reader:
            return bm25.find_highlights(reader.connection, request.phrase, keys)

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """How many matching documents have each value of each field."""
        with self._open_reader(index) as reader:
            match = bm25.build_match_expression(reader.connection, request.phrase)
            clause, values = sql.build_where(request.conditions)
            filter_clause = f" AND {clause}" if clause else ""
            matching = f"SELECT document FROM passages WHERE passage IN (SELECT rowid FROM texts WHERE texts MATCH ?){filter_clause}"
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
        """Remove `index` and its files. Raises IndexMissingError, IndexBusyError."""
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
        """Close what is open; the next call opens it again."""
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
            raise IndexMissingError(f"index {index!r} was begun and never made: ingest into it")
        return _Reader(
            connection, spec, GraphReader(self._graphs(index), spec.dimension, spec.policy), file
        )

    def _check_exists(self, index: str) -> None:
        if not self._path(index).is_file():
            existing = ", ".join(self.list_indexes()) or "none"
            raise IndexMissingError(
                f"there is no index {index!r} in {self._folder} (indexes there: {existing}). Make it: python -m hybrid_search.ingest --index {index}"
            )

    def _path(self, index: str) -> Path:
        return self._folder / f"{index_names.check_index_name(index)}.sqlite"

    def _graphs(self, index: str) -> Path:
        return self._folder / f"{index}.spans"


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _allowed_passages(
    connection: sqlite3.Connection, conditions: Sequence[Condition]
) -> NDArray[np.int64]:
    clause, values = sql.build_where(conditions)
    matches = connection.execute(f"SELECT passage FROM passages WHERE {clause}", values).fetchall()
    return np.array([row[0] for row in matches], dtype=np.int64)


def _count_to_score(
    connection: sqlite3.Connection, request: Request, allowed: NDArray[np.int64] | None
) -> int:
    """How many passages to score exactly: under a filter, the share of `CANDIDATES` that it leaves,
    and some more.
    """
    if allowed is None:
        return max(CANDIDATES, request.window)
    total = int(connection.execute("SELECT count(*) FROM tokens").fetchone()[0])
    return max(CANDIDATES * len(allowed) // max(total, 1), FILTERED * request.window)


def _score_exactly(
    connection: sqlite3.Connection, request: Request, passages: NDArray[np.int64]
) -> dict[Key, TokenCodes]:
    """The window of those of `passages` that are there, with their codes, by their best span, all
    spans scored.
    """
    codes_by_passage = {
        number: from_bytes(data)
        for number, data in sorted(sql.read_codes(connection, passages.tolist()))
    }
    return best_passages(request.vector, codes_by_passage, request.window)
