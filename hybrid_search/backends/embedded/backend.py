"""The embedded backend: an index is one SQLite file, with its segments in a folder beside it.

Many processes may read while one writes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from hybrid_search.backends import index_names
from hybrid_search.backends.embedded import (
    bm25,
    codes_scan,
    commits,
    exact_scores,
    file_check,
    head,
    near_passages,
    salvage,
    scan,
    schema,
    sql,
    term_sums,
)
from hybrid_search.backends.embedded.next_version import NextVersion
from hybrid_search.backends.embedded.number_columns import Numbers, read_numbers
from hybrid_search.backends.embedded.passage_documents import PassageDocuments
from hybrid_search.backends.embedded.readers import Reader, ReaderPool
from hybrid_search.backends.embedded.segment_reader import describe_lost_passages
from hybrid_search.backends.embedded.writer import EmbeddedWriter, remove_files
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import (
    Candidates,
    Fault,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    Request,
    Salvage,
    ScannedPassage,
    StoredPassage,
    check_spec,
)
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.private_files import FOLDER_MODE
from hybrid_search.text.filters import Scalar
from hybrid_search.text.name_lists import list_names

EXACT_PASSAGES = 2000
"""If a filter leaves at most so many passages, all their spans are scored.

That takes about 0.05 s, and no passage can be missed.
"""


def check_options(options: Mapping[str, str]) -> None:
    """Raise UsageError if there are any options: only servers have them."""
    if options:
        raise UsageError(
            f"an embedded index has no {', '.join(options)}: "
            "that is for an index on a server (--url opensearch+https://...)"
        )


class EmbeddedBackend:
    """Indexes in `folder`: NAME.sqlite and NAME.spans/.

    Safe to use from several threads, which read side by side.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers = ReaderPool()

    def writer(self, index: str, spec: IndexSpec) -> EmbeddedWriter:
        """Open `index` for writing; one that does not exist stays if a document is written."""
        return self._open_writer(index, spec, keeps_empty=False)

    def _open_writer(self, index: str, spec: IndexSpec, *, keeps_empty: bool) -> EmbeddedWriter:
        path, folder = self._path(index), self._segments(index)
        with schema.translate_errors(path):
            self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            lock = WriterLock(path.with_suffix(".lock"), index)
            is_new = not (path.exists() or path.is_symlink())
            try:
                self._create_tables(index, spec)
                return EmbeddedWriter(
                    path, folder, spec, lock, keeps_empty=keeps_empty or not is_new
                )
            except BaseException:
                if is_new:
                    remove_files(path, folder, lock)
                else:
                    lock.release()
                raise

    def _create_tables(self, index: str, spec: IndexSpec) -> None:
        path = self._path(index)
        schema.create(path)
        with closing(schema.connect(path)) as connection:
            index_spec = head.read_spec(connection, path)
            if index_spec:
                check_spec(index, index_spec, spec)
            else:
                head.write_spec(connection, spec)

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists; options are an error, as only servers have."""
        check_options(options)
        with self._open_writer(index, spec, keeps_empty=True):
            pass

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> NextVersion:
        """Return a new index beside `index`, to be filled and published in its place.

        Raises IndexMissingError if the index does not exist, IndexBusyError if it is being written.
        """
        check_options(options)
        path = self._path(index)
        self._check_exists(index)
        draft_folder = self._folder / f"{index}.next"
        with schema.translate_errors(path):
            return NextVersion(path, spec, EmbeddedBackend(draft_folder), draft_folder)

    def read_head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """Return the spec of `index` and its metadata fields (dotted name -> type)."""
        with self._open_reader(index) as reader:
            return reader.spec, head.read_fields(reader.connection)

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count what it contains."""
        with self._open_reader(index) as reader:
            info = sql.describe_index(reader.connection, reader.spec)
        size, written_at = file_check.measure(self._path(index))
        return replace(info, bytes=size, written_at=written_at)

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.sqlite"))

    def iterate_passages(self, index: str, *, full: bool = False) -> Iterator[ListedPassage]:
        """Yield every passage, from a snapshot of the index."""
        path, (spec, _) = self._path(index), self.read_head(index)
        with schema.translate_errors(path):
            connection, _ = schema.connect_reader(path)
            with closing(connection):
                yield from scan.iterate_passages(connection, self._segments(index), spec, full=full)

    def scan_codes(self, index: str, after: Position = None) -> Iterator[ScannedPassage]:
        """Yield every passage with its word codes, in the order in which they were written.

        A passage that is written meanwhile comes behind all others.
        """
        passage = 0 if after is None else int(after)
        while True:
            with self._open_reader(index, begins_query=False) as reader:
                page = codes_scan.read_page(reader.connection, passage)
            yield from page
            if not page:
                return
            passage = page[-1].position

    def count_commits(self, index: str) -> tuple[str, int]:
        """Return the identity of an index, and how often it was committed."""
        with self._open_reader(index) as reader:
            count = commits.read_count(reader.connection)
        return count.identity, count.number

    def find_file_faults(self, index: str, *, full: bool = False) -> list[Fault]:
        """Return what is wrong with the file of `index` as a whole; `full` checks more of it."""
        path = self._path(index)
        self._check_exists(index)
        with schema.translate_errors(path):
            return file_check.find_file_faults(path, full=full)

    def salvage(self, index: str) -> Salvage:
        """Put a copy of what can be read of `index` in its place, and return what became of it."""
        path = self._path(index)
        spec = salvage.read_spec(path)
        new_version = self.create_next_version(index, spec, {})
        try:
            copied = new_version.salvage()
            new_version.publish(keep=False)
        except BaseException:
            new_version.discard()
            raise
        return copied

    def list_passages(self, index: str, document_id: str) -> list[Key]:
        """Return the passages of a document in their order."""
        with self._open_reader(index) as reader:
            return sql.list_passages(reader.connection, document_id)

    def take_place(self) -> AbstractContextManager[None]:
        """Compute no more queries at once than there are cores, see `LocalBackend`."""
        return self._readers.queries.take(begins_query=True)

    def find_candidates(self, index: str, request: Request) -> Candidates:
        """Return the best passages of each leg.

        BM25 is computed from FTS5's tables. The short codes of the segments propose passages for
        the span leg, or all are scored if there are few, or a filter leaves few.
        """
        with self._open_reader(index) as reader:
            allowed = reader.find_allowed_passages(request)
            matches = self._matches(reader, request, allowed)
            documents = reader.documents.refresh(reader.connection)
            bm25_scores = matches.best_scores(request.window, documents) if request.lexical else {}
            candidates = (
                self._find_by_spans(reader, request, allowed, bm25_scores, documents)
                if request.semantic
                else Candidates()
            )
            warnings = [*candidates.warnings, *reader.find_warnings(self._path(index))]
            if matches.is_damaged:
                warnings.append(bm25.report_damage(index))
            return replace(candidates, lexical=bm25_scores, memo=matches, warnings=warnings)

    def _find_by_spans(
        self,
        reader: Reader,
        request: Request,
        allowed: Numbers | None,
        by_words: Collection[Key],
        documents: PassageDocuments,
    ) -> Candidates:
        """Return the passages of the span leg with their codes, and how they were found.

        The passages `by_words`, those of the BM25 leg, are scored with the nearest, since a query
        needs their cosines anyway.
        """
        connection = reader.connection
        lists_all = True
        if allowed is None:
            most, method = max(near_passages.MOST_CANDIDATES, request.window), "exact"
            few, lists_all = _read_few(connection, most)
        else:
            few = allowed if len(allowed) <= EXACT_PASSAGES else None
            method = "exact, on what the filter leaves"
        if few is not None:
            best = exact_scores.score(reader, request, few, by_words, documents)
            warnings = [] if lists_all else [describe_lost_passages(schema.index_name(connection))]
            return Candidates(
                semantic=best.codes,
                method=method,
                codes=best.others,
                damaged=best.damaged,
                warnings=warnings,
                cosines=best.cosines,
            )
        current_segments = reader.segments.refresh(connection)
        best = exact_scores.score_nearest(
            reader, current_segments, request, allowed, by_words, documents
        )
        left_out = current_segments.damaged.union(sql.read_left_out(connection))
        return Candidates(
            semantic=best.codes,
            method=current_segments.method,
            codes=best.others,
            damaged=[*best.damaged, *sorted(left_out)],
            warnings=current_segments.warnings,
            cosines=best.cosines,
        )

    def complete_candidates(
        self,
        index: str,
        request: Request,
        keys: Sequence[Key],
        candidates: Candidates | None = None,
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes."""
        matches = candidates.memo if candidates else None
        with self._open_reader(index, begins_query=False) as reader:
            if not isinstance(matches, bm25.Matches):
                allowed = reader.find_allowed_passages(request)
                matches = self._matches(reader, request, allowed)
            scores = dict(zip(keys, matches.scores_of(keys), strict=True))
            codes = candidates.all_codes if candidates else {}
            if unread := [key for key in keys if key not in codes]:
                stored = reader.codes.read(reader.connection, unread)
                codes |= exact_scores.read_codes(reader, request, stored)
            return sql.read_passages(reader.connection, keys, scores, codes)

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        with self._open_reader(index, begins_query=False) as reader:
            return sql.read_contents(reader.connection, keys)

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return start and end of the matching words of each passage that has any."""
        with self._open_reader(index, begins_query=False) as reader:
            return bm25.find_highlights(reader.connection, request.phrase, keys, reader.terms)

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        with self._open_reader(index, begins_query=False) as reader:
            allowed = reader.find_allowed_passages(request)
            matches = self._matches(reader, request, allowed)
            numbers = json.dumps(matches.passages.tolist())
            matching = (
                "SELECT document FROM passages WHERE passage IN (SELECT value FROM json_each(?))"
            )
            return {
                name: sql.count_facet(reader.connection, name, matching, (numbers,))
                for name in fields
            }

    def _matches(self, reader: Reader, request: Request, allowed: Numbers | None) -> bm25.Matches:
        version = reader.connection.execute("PRAGMA data_version").fetchone()[0]
        cache_key = (request.phrase, request.conditions, request.speakers, version)
        if reader.matches is None or reader.matches[0] != cache_key:
            matches = bm25.search(reader.connection, request.phrase, reader.terms, allowed)
            reader.matches = cache_key, matches
        return reader.matches[1]

    def drop_index(self, index: str) -> None:
        """Remove `index` and its files; raise IndexBusyError if another process is writing it."""
        path = self._path(index)
        self._check_exists(index)
        with schema.translate_errors(path):
            lock = WriterLock(path.with_suffix(".lock"), index)
            try:
                self._readers.close(path)
                remove_files(path, self._segments(index), lock)
            except BaseException:
                lock.release()
                raise

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self._readers.close()

    @contextmanager
    def _open_reader(self, index: str, *, begins_query: bool = True) -> Iterator[Reader]:
        path = self._path(index)
        with schema.translate_errors(path):
            self._check_exists(index)
            with self._readers.lend(
                path, self._segments(index), begins_query=begins_query
            ) as reader:
                yield reader

    def _check_exists(self, index: str) -> None:
        if not self._path(index).is_file():
            existing = list_names(self.list_indexes(), index)
            raise IndexMissingError(
                f"there is no index {index!r} in {self._folder} (indexes there: {existing}). "
                f"Create it: hybrid-search ingest FILE --index {index}"
            )

    def _path(self, index: str) -> Path:
        return self._folder / f"{index_names.check_index_name(index)}.sqlite"

    def _segments(self, index: str) -> Path:
        return self._folder / f"{index}.spans"


def _read_few(connection: sqlite3.Connection, most: int) -> tuple[Numbers | None, bool]:
    """Return the passages of an index that has at most so many, and whether none is missing."""
    with schema.read_transaction(connection):
        if connection.execute("SELECT 1 FROM tokens LIMIT 1 OFFSET ?", (most,)).fetchone():
            return None, True
        passages = read_numbers(connection, "SELECT group_concat(passage) FROM tokens")
        return passages, term_sums.has_all_passages(connection, passages)
