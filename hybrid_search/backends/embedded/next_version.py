"""The next version of an embedded index: made in a folder beside it, then put in its place.

Readers see the old version until one file is renamed, and then the new one. Nobody may write
meanwhile.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from hybrid_search.backends.base import Backend, Writer
from hybrid_search.backends.embedded import head, salvage, schema, segments, term_sums
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import IndexSpec, Salvage, check_spec
from hybrid_search.errors import IndexStoreError
from hybrid_search.private_files import FOLDER_MODE
from hybrid_search.text import window_policy, word_codes

_log = logging.getLogger(__name__)


class NextVersion:
    """A new index in `draft`, a store in a folder of its own, to replace the index at `path`.

    Its segments are numbered on from those of the old version, so that both can lie in one folder.
    """

    keeps_old = False

    def __init__(self, path: Path, spec: IndexSpec, draft: Backend, draft_folder: Path) -> None:
        window_policy.parse(spec.policy)
        self._path, self._spec, self._index = path, spec, path.stem
        self._draft, self._draft_folder = draft, draft_folder
        self._draft_path = draft_folder / path.name
        self._lock = WriterLock(path.with_suffix(".lock"), self._index)
        self._is_open = True
        try:
            self._remove_draft()  # of a run that was killed
            draft.create_index(self._index, spec, {})
            self._continue_segments()
        except BaseException:
            self._close()
            raise

    def _continue_segments(self) -> None:
        query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'segments'"
        files = segments.list_files(self._path.with_suffix(".spans"))
        last = max((int(file.stem) for file in files if file.stem.isdigit()), default=0)
        with closing(schema.connect(self._path)) as old, closing(self._connect_draft()) as new:
            with suppress(sqlite3.DatabaseError):  # damaged: no file has a larger number
                last = max(last, *old.execute(query).fetchone())
            new.execute("INSERT INTO sqlite_sequence VALUES ('segments', ?)", (last,))

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Return a writer of the new index; raises ModelError if that is for another spec."""
        return self._draft.writer(index, spec)

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy the file with all codes; only the segments are made anew.

        Fields that no document has any more are left behind, and so is the space of what was
        deleted. Raises ModelError if the new index is for another model.

        Args:
            rehash: Turns a document's source hash into its hash under the new spec.
            report: Is called with the number of passages copied so far.
        """
        with schema.translate_errors(self._draft_path):
            with closing(schema.connect(self._path)) as old:
                old_spec = head.read_spec(old, self._path) or self._spec
                check_spec(self._index, replace(old_spec, policy=self._spec.policy), self._spec)
                schema.remove(self._draft_path)
                schema.copy(old, self._draft_path)
            with closing(self._connect_draft()) as new, schema.transaction(new):
                head.write_spec(new, self._spec)
                new.execute("DELETE FROM segments")
                head.write_fields(new, head.collect_fields(new))
                new.create_function("rehash", 1, lambda old_hash: rehash(old_hash, self._spec))
                new.execute("UPDATE documents SET source_hash = rehash(source_hash)")
                if old_spec.policy != self._spec.policy:
                    _replace_span_counts(new, self._spec.policy)
        with self.writer(self._index, self._spec):
            pass  # it makes the segments at its end
        report(self._draft.describe_index(self._index).passages)

    def salvage(self) -> Salvage:
        """Copy the documents that can be read in a damaged file, and return what became of it."""
        with (
            schema.translate_errors(self._draft_path),
            closing(schema.connect(self._path)) as old,
            closing(self._connect_draft()) as new,
            schema.transaction(new),
        ):
            copied = salvage.copy_documents(old, new)
            term_sums.update(new)
        with self.writer(self._index, self._spec):
            pass  # it makes the segments at its end
        return copied

    def check(self, expected_documents: int) -> None:
        """Check that the new index holds this many documents, each with all its passages.

        Raises:
            IndexStoreError: If it does not.
        """
        with closing(self._connect_draft()) as new:
            query = "SELECT count(*), coalesce(sum(passages), 0) FROM documents"
            documents, expected_passages = new.execute(query).fetchone()
            (passages,) = new.execute("SELECT count(*) FROM passages").fetchone()
        if (documents, passages) != (expected_documents, expected_passages):
            raise IndexStoreError(
                f"the new index has {documents} documents of {expected_documents} and {passages} "
                f"passages of {expected_passages}. Nothing was changed; run the same command again"
            )

    def publish(self, *, keep: bool) -> None:  # noqa: ARG002 (there is nothing to keep it as)
        """Put the new index in the place of the old one, with its segments."""
        with schema.translate_errors(self._path):
            self._draft.close()
            folder = self._path.with_suffix(".spans")
            for file in segments.list_files(self._draft_path.with_suffix(".spans")):
                folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
                file.replace(folder / file.name)
            schema.replace(self._path, self._draft_path)
            with closing(schema.connect(self._path)) as connection:
                segments.sweep(folder, segments.list_segments(connection))
        self._close()

    def discard(self) -> None:
        """Remove the new index, unless it was published after all."""
        if self._is_open:
            self._close()

    def _close(self) -> None:
        self._is_open = False
        try:
            self._remove_draft()
        finally:
            self._lock.release()

    def _remove_draft(self) -> None:
        self._draft.close()
        if self._draft_path.exists():
            self._draft.drop_index(self._index)
        if self._draft_folder.is_dir():
            segments.remove_folder(self._draft_path.with_suffix(".spans"))
            self._draft_path.with_suffix(".lock").unlink(missing_ok=True)
            try:
                self._draft_folder.rmdir()
            except OSError as error:
                _log.warning("%s was left as it is: %s", self._draft_folder, error.strerror)

    def _connect_draft(self) -> sqlite3.Connection:
        return schema.connect(self._draft_path)


def _replace_span_counts(connection: sqlite3.Connection, policy: str) -> None:
    """Record how many covering windows each passage has under `policy`."""

    def count_windows(data: bytes) -> int:
        return len(window_policy.window_bounds(word_codes.read(data).counts, policy))

    connection.create_function("count_windows", 1, count_windows)
    codes = "(SELECT data FROM tokens WHERE tokens.passage = passages.passage)"
    connection.execute(f"UPDATE passages SET spans = count_windows({codes})")
