"""The embedded backend: one SQLite file an index, its graphs in a folder beside it. Many processes may read while one writes."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends import names
from hybrid_search.backends.base import Candidates, Content, IndexInfo, IndexSpec, Key, Listed, Request, Stored, check_spec
from hybrid_search.backends.embedded import lexical, rows, schema, walking
from hybrid_search.backends.embedded.neighbours import Neighbours
from hybrid_search.backends.embedded.writer import EmbeddedWriter
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.filters import Condition, Scalar
from hybrid_search.tokens import best_passages, from_bytes
from hybrid_search.types import TokenCodes

EXACT_PASSAGES = 2000
"""A filter that leaves so few passages is answered by scoring all their spans: about 0.1 s, and nothing can be missed."""

CANDIDATES = 2000
"""Passages that the covering spans propose and whose every span is then scored. More of them buy the same recall as more covering spans
(`covering`), at a fraction of the space and of the time to build: of the exact ten best on calls_sgd .930 with 1,000 of them (and graphs searched
for 2,048 spans), .957 with 2,000 (and 4,096)."""

FILTERED = 3
"""Windows of passages that are scored exactly, at least, where a filter holds."""


@dataclass(slots=True, eq=False)
class _Reader:
    """What a process keeps open of an index that it queries. `matches` is the last BM25 list, which both round trips of a query need.

    `file` is the identity of the SQLite file: another process may drop an index and make it again, and what is open then shows what was.
    """

    connection: sqlite3.Connection
    spec: IndexSpec
    neighbours: Neighbours
    file: tuple[int, int]
    matches: tuple[object, lexical.Matches] | None = None


class EmbeddedBackend:
    """Indexes in `folder`: NAME.sqlite and NAME.spans/. Safe to use from several threads, one query at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[str, _Reader] = {}
        self._one_at_a_time = threading.RLock()

    def writer(self, index: str, spec: IndexSpec) -> EmbeddedWriter:
        """Open `index` for writing, and make it if it is not there. Raises IndexBusyError, ModelError."""
        path = self._path(index)
        with schema.translated(path):
            _make_folder(self._folder)
            lock = schema.WriterLock(path.with_suffix(".lock"), index)
            try:
                self._create(index, spec)
                return EmbeddedWriter(path, self._graphs(index), spec, lock)
            except BaseException:
                lock.release()
                raise

    def _create(self, index: str, spec: IndexSpec) -> None:
        connection = schema.connect(self._path(index))
        try:
            connection.executescript(schema.TABLES)
            held = rows.read_spec(connection)
            if held:
                check_spec(index, held, spec)
            else:
                rows.write_spec(connection, spec)
        finally:
            connection.close()

    def create(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none. Raises UsageError for any options: those are for servers."""
        if options:
            raise UsageError(f"an embedded index has no {', '.join(options)}: that is for one on a server (--url opensearch+https://... )")
        with self.writer(index, spec):
            pass

    def head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """What `index` was made for, and its metadata fields. Raises IndexMissingError."""
        with self._reading(index) as reader:
            return reader.spec, rows.fields(reader.connection)

    def describe(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        with self._reading(index) as reader:
            return rows.describe(reader.connection, reader.spec)

    def indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.sqlite"))

    def walk(self, index: str) -> Iterator[Listed]:
        """Every passage, as they are when the walk begins."""
        path = self._path(index)
        self._missing(index)
        with schema.translated(path), closing(schema.connect(path)) as connection:
            yield from walking.listed(connection, self._graphs(index))

    def candidates(self, index: str, request: Request) -> Candidates:
        """BM25 by FTS5; spans by the graphs, or by exact scoring where a filter leaves few passages."""
        with self._reading(index) as reader:
            matching = self._scores(reader, request, request.window) if request.lexical else {}
            alike, method = self._semantic(reader, request) if request.semantic else ({}, "not asked")
            return Candidates(matching, alike, method)

    def _semantic(self, reader: _Reader, request: Request) -> tuple[dict[Key, TokenCodes], str]:
        allowed = _allowed(reader.connection, request.conditions) if request.conditions else None
        if allowed is not None and len(allowed) <= EXACT_PASSAGES:
            return _best(reader.connection, request, allowed), "exact, on what the filter leaves"
        reader.neighbours.refresh(reader.connection)
        usable, wanted = np.zeros(0, np.int64), _wanted(reader.connection, request, allowed)
        for found in reader.neighbours.passages(request.vector, wanted):
            usable = found if allowed is None else found[np.isin(found, allowed)]
            best = _best(reader.connection, request, usable[:wanted]) if len(usable) >= wanted else {}
            if len(best) >= request.window:  # fewer, where many of the passages that were found are gone
                return best, reader.neighbours.method
        return _best(reader.connection, request, usable), reader.neighbours.method

    def complete(self, index: str, request: Request, keys: Sequence[Key], found: Candidates | None = None) -> list[Stored]:  # noqa: ARG002 # all is at hand
        """The passages of `keys` with BM25 and codes, in order; those deleted in between left out."""
        with self._reading(index) as reader:
            return rows.read(reader.connection, keys, self._scores(reader, request))

    def contents(self, index: str, keys: Sequence[Key]) -> dict[Key, Content]:
        """What is shown of each passage of `keys` that is there."""
        with self._reading(index) as reader:
            return rows.contents(reader.connection, keys)

    def highlights(self, index: str, request: Request, keys: Sequence[Key]) -> dict[Key, list[tuple[int, int]]]:
        """Start and end of the matching words of each passage of `keys` that has any."""
        with self._reading(index) as reader:
            return lexical.highlights(reader.connection, request.phrase, keys)

    def facets(self, index: str, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """How many matching documents have each value of each field."""
        with self._reading(index) as reader:
            match = lexical.expression(reader.connection, request.phrase)
            clause, values = rows.where(request.conditions)
            within = f" AND {clause}" if clause else ""
            matching = f"SELECT document FROM passages WHERE passage IN (SELECT rowid FROM texts WHERE texts MATCH ?){within}"
            return {name: rows.facet(reader.connection, name, matching, (match, *values)) if match else {} for name in fields}

    def _scores(self, reader: _Reader, request: Request, most: int | None = None) -> dict[Key, float]:
        matches = self._matches(reader, request)
        return dict(zip(matches.passages[:most].tolist(), matches.scores[:most].tolist(), strict=True))

    def _matches(self, reader: _Reader, request: Request) -> lexical.Matches:
        version = reader.connection.execute("PRAGMA data_version").fetchone()[0]
        asked = (request.phrase, request.conditions, version)
        if reader.matches is None or reader.matches[0] != asked:
            clause, values = rows.where(request.conditions)
            within = f" AND rowid IN (SELECT passage FROM passages WHERE {clause})" if clause else ""
            reader.matches = asked, lexical.search(reader.connection, request.phrase, within, tuple(values))
        return reader.matches[1]

    def hybrid(self, index: str, request: Request, alpha: float, technique: str) -> None:  # noqa: ARG002
        """None: there is no fusion but ours."""
        return

    def next_version(self, *_: object) -> NoReturn:
        """There are none. Raises UsageError."""
        raise UsageError("only an index on a server has versions: ingest into one of another name, and drop this one")

    def bodies(self, *_: object) -> NoReturn:
        """There are none. Raises UsageError."""
        raise UsageError("an embedded index is asked without requests: there is nothing to print. Use --url opensearch+https://...")

    def drop(self, index: str) -> None:
        """Remove `index` and its files. Raises IndexMissingError, IndexBusyError."""
        path = self._path(index)
        self._missing(index)
        lock = schema.WriterLock(path.with_suffix(".lock"), index)
        with self._one_at_a_time:
            if reader := self._readers.pop(index, None):
                reader.connection.close()
            shutil.rmtree(self._graphs(index), ignore_errors=True)
            for suffix in (".sqlite", ".sqlite-wal", ".sqlite-shm"):
                path.with_suffix(suffix).unlink(missing_ok=True)
        lock.release()
        path.with_suffix(".lock").unlink(missing_ok=True)

    def close(self) -> None:
        """Close what is open; the next call opens it again."""
        with self._one_at_a_time:
            while self._readers:
                self._readers.popitem()[1].connection.close()

    @contextmanager
    def _reading(self, index: str) -> Iterator[_Reader]:
        path = self._path(index)
        with self._one_at_a_time, schema.translated(path):
            self._missing(index)
            if index in self._readers and self._readers[index].file != _identity(path):
                self._readers.pop(index).connection.close()
            if index not in self._readers:
                self._readers[index] = self._open(index)
            yield self._readers[index]

    def _open(self, index: str) -> _Reader:
        path = self._path(index)
        file, connection = _identity(path), schema.connect(path, mapped=True)
        spec = rows.read_spec(connection)
        if spec is None:
            connection.close()
            raise IndexMissingError(f"index {index!r} was begun and never made: ingest into it")
        return _Reader(connection, spec, Neighbours(self._graphs(index), spec.dimension, spec.policy), file)

    def _missing(self, index: str) -> None:
        if not self._path(index).is_file():
            there = ", ".join(self.indexes()) or "none"
            raise IndexMissingError(
                f"there is no index {index!r} in {self._folder} (indexes there: {there}). Make it: python -m hybrid_search.ingest --index {index}"
            )

    def _path(self, index: str) -> Path:
        return self._folder / f"{names.checked(index)}.sqlite"

    def _graphs(self, index: str) -> Path:
        return self._folder / f"{index}.spans"


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _allowed(connection: sqlite3.Connection, conditions: Sequence[Condition]) -> NDArray[np.int64]:
    clause, values = rows.where(conditions)
    found = connection.execute(f"SELECT passage FROM passages WHERE {clause}", values).fetchall()
    return np.array([row[0] for row in found], dtype=np.int64)


def _wanted(connection: sqlite3.Connection, request: Request, allowed: NDArray[np.int64] | None) -> int:
    """How many passages to score exactly: under a filter, the share of `CANDIDATES` that it leaves, and some more."""
    if allowed is None:
        return max(CANDIDATES, request.window)
    everything = int(connection.execute("SELECT count(*) FROM tokens").fetchone()[0])
    return max(CANDIDATES * len(allowed) // max(everything, 1), FILTERED * request.window)


def _best(connection: sqlite3.Connection, request: Request, passages: NDArray[np.int64]) -> dict[Key, TokenCodes]:
    """The window of those of `passages` that are there, with their codes, by their best span, all spans scored."""
    held = {number: from_bytes(data) for number, data in sorted(rows.codes(connection, passages.tolist()))}
    return best_passages(request.vector, held, request.window)
