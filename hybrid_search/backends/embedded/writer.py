"""The writer of an embedded index: first SQLite, then the segments, made from its codes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hybrid_search.backends.embedded import (
    commits,
    head,
    schema,
    segments,
    sql,
    term_sums,
    value_sums,
)
from hybrid_search.backends.embedded.segment_builder import SegmentBuilder
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument
from hybrid_search.errors import InputError
from hybrid_search.text.types import Document, Entry

_log = logging.getLogger(__name__)

SAVEPOINT = "before_the_document"
"""The savepoint to which an incomplete document is rolled back."""


class EmbeddedWriter:
    """Writes the SQLite file at `path` and the segments in `folder`; closing releases `lock`.

    `read_source_hashes` may be called from another thread than the other methods: it reads what was
    committed, on a connection of its own. Unless it `keeps_empty`, an index that has no document at
    the end is removed.
    """

    def __init__(
        self, path: Path, folder: Path, spec: IndexSpec, lock: WriterLock, *, keeps_empty: bool
    ) -> None:
        self._path, self._folder, self._lock = path, folder, lock
        self._keeps_empty = keeps_empty
        self._connection, self._reader = schema.connect(path), schema.connect(path)
        self._document: int | None = None
        self._segment_builder = SegmentBuilder(self._connection, folder, spec)
        with schema.translate_errors(path):
            with schema.transaction(self._connection):
                head.mend(self._connection, path)
                if term_sums.read_coverage(self._connection) is None:
                    value_sums.make(self._connection)
                    term_sums.make(self._connection)
            self._segment_builder.repair()
            if lost := commits.find_lost(path, self._connection):
                _log.warning("%s", lost)

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed."""
        with schema.translate_errors(self._path):
            return sql.read_source_hashes(self._reader, ids)

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Write passages; a transaction ends only between documents, so nobody sees half of one.

        Returns:
            The documents whose metadata does not fit the index's fields.
        """
        with schema.translate_errors(self._path):
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            open_document = entries[-1].document if entries and not entries[-1].is_last else None
            refusals = [
                refusal
                for entry in entries
                if (refusal := self._insert_entry(entry, open_document))
            ]
            if entries and entries[-1].is_last:
                self._commit()
        return refusals

    def _commit(self) -> None:
        count = commits.raise_count(self._connection)
        term_sums.update(self._connection)
        self._connection.execute("COMMIT")
        self._lock.write(commits.format_mark(count))
        self._segment_builder.grow()

    def abandon(self) -> None:
        """Undo the unfinished document, if there is one, and commit those before it."""
        with schema.translate_errors(self._path):
            if self._document is not None:
                self._connection.execute(f"ROLLBACK TO {SAVEPOINT}")
                self._document = None
            if self._connection.in_transaction:
                self._commit()

    def _insert_entry(self, entry: Entry, open_document: Document | None) -> Refusal | None:
        if entry.passage.ordinal == 0:
            # Only this document needs a savepoint: each one makes FTS5 write out its buffer.
            if entry.document is open_document:
                self._connection.execute(f"SAVEPOINT {SAVEPOINT}")
            try:
                head.learn_fields(self._connection, entry.document)
            except InputError as error:
                self._document = None
                return Refusal(entry.document, str(error), error.detail)
            self._document = sql.insert_document(self._connection, entry)
        if self._document is not None:
            sql.insert_passage(self._connection, self._document, entry)
        if entry.is_last:
            self._document = None
        return None

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        with schema.translate_errors(self._path):
            with schema.transaction(self._connection):
                deleted = sql.delete_documents(self._connection, ids)
                count = commits.raise_count(self._connection)
                term_sums.update(self._connection)
            self._lock.write(commits.format_mark(count))
        return deleted

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Do nothing: rejected documents are only in the rejects file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if kind is None:
                with schema.translate_errors(self._path):
                    self._segment_builder.finish()
                    self._lock.write(commits.format_mark(commits.read_count(self._connection)))
        finally:
            is_kept = self._keeps_empty or sql.has_documents(self._connection)
            self._reader.close()
            schema.close_writer(self._connection)
            if is_kept:
                self._lock.release()
            else:
                remove_files(self._path, self._folder, self._lock)


def remove_files(path: Path, folder: Path, lock: WriterLock) -> None:
    """Remove all files of a closed index, and release its lock."""
    left = segments.remove_folder(folder)
    schema.remove(path)
    lock.remove()
    if left:
        _log.warning("index %r is deleted, but %s, and was left as it is", path.stem, left)
