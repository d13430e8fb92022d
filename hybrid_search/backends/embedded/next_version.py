"""The next version of an index: made in a folder beside it, then put in its place.

Readers see the old version until the head of the index is replaced, and then the new one. Nobody
may write meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import tantivy

from hybrid_search.backends.base import Writer
from hybrid_search.backends.embedded import record
from hybrid_search.backends.embedded.codes_file import merge
from hybrid_search.backends.embedded.failures import translate_errors
from hybrid_search.backends.embedded.head import Head, read_head
from hybrid_search.backends.embedded.record import Record
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.embedded.versions import (
    CODES,
    RECORDS,
    create_version,
    remove_version,
    sweep_versions,
)
from hybrid_search.backends.embedded.writer import HEAP_BYTES, EmbeddedWriter
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import IndexSpec, check_spec
from hybrid_search.errors import IndexMissingError, IndexStoreError
from hybrid_search.text import window_policy, word_codes

PAGE_PASSAGES = 256
"""Records that are read at once."""


class NextVersion:
    """A new version of the index in `folder`; it takes over `lock`, and releases it at the end."""

    keeps_old = False

    def __init__(self, folder: Path, spec: IndexSpec, lock: WriterLock) -> None:
        self._folder, self._lock, self._is_open = folder, lock, True
        try:
            window_policy.parse(spec.policy)
            current = read_head(folder)
            if current is None:
                raise IndexMissingError(f"index {folder.stem!r} was deleted meanwhile")
            self._old = current
            self._new = Head.create(spec, current.version + 1)
            sweep_versions(folder, current)  # of a run that was killed
            create_version(folder, self._new)
        except BaseException:
            lock.release()
            raise

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Return a writer of the new version; raises ModelError if that is for another spec."""
        check_spec(index, self._new.spec, spec)
        return EmbeddedWriter(self._folder, self._new, None, keeps_empty=True)

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy every passage with its codes, under its number.

        What was deleted is left behind. Raises ModelError if the new version is for another model.

        Args:
            rehash: Turns a document's source hash into its hash under the new spec.
            report: Is called with the number of passages copied so far.
        """
        spec = self._new.spec
        check_spec(self._folder.stem, replace(self._old.spec, policy=spec.policy), spec)
        with translate_errors(self._folder):
            old = Snapshot(self._folder, self._old)
            is_cut_anew = self._old.spec.policy != spec.policy

            def renew(found: Record) -> Record:
                spans = self._count_spans(old, found) if is_cut_anew else found.spans
                return replace(found, source_hash=rehash(found.source_hash, spec), spans=spans)

            self._write_records(map(renew, _iterate_records(old)))
            target = self._new.version_folder(self._folder) / CODES
            for file in old.files:
                merge([file], old.documents.passages, target, self._new.identity)
        report(len(old))

    def _count_spans(self, old: Snapshot, found: Record) -> int:
        tokens = old.read_codes([found.passage]).get(found.passage, word_codes.UNREADABLE)
        return len(window_policy.window_bounds(tokens.counts, self._new.spec.policy))

    def _write_records(self, records: Iterable[Record]) -> None:
        folder = self._new.version_folder(self._folder) / RECORDS
        writer = tantivy.Index.open(str(folder)).writer(HEAP_BYTES, 1)
        for found in records:
            writer.add_document(record.to_document(found))
        writer.commit()
        writer.wait_merging_threads()

    def check(self, expected_documents: int) -> None:
        """Check that the new version holds this many documents, each with all its passages.

        Raises:
            IndexStoreError: If it does not.
        """
        with translate_errors(self._folder):
            new = Snapshot(self._folder, self._new)
            firsts = new.records.find_records(new.records.match_firsts())
            expected = sum(found.passages for found in firsts)
        if (new.count_documents(), len(new)) != (expected_documents, expected):
            raise IndexStoreError(
                f"the new index has {new.count_documents()} documents of {expected_documents} and "
                f"{len(new)} passages of {expected}. Nothing was changed; run the command again"
            )

    def publish(self, *, keep: bool) -> None:  # noqa: ARG002 (there is nothing to keep it as)
        """Put the new version in the place of the old one."""
        with translate_errors(self._folder):
            self._new.write(self._folder)
            remove_version(self._old.version_folder(self._folder))
        self._close()

    def discard(self) -> None:
        """Remove this version, unless it was published after all."""
        if self._is_open:
            remove_version(self._new.version_folder(self._folder))
            self._close()

    def _close(self) -> None:
        self._is_open = False
        self._lock.release()


def _iterate_records(old: Snapshot) -> Iterator[Record]:
    """Yield all sound records, in the order of passages."""
    passages = old.documents.passages.tolist()
    for start in range(0, len(passages), PAGE_PASSAGES):
        records = old.records.read_records(passages[start : start + PAGE_PASSAGES])
        yield from (found for found in records.values() if found is not None)
