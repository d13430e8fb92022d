"""The next version of an index: made in a folder beside it, then put in its place.

Readers see the old version until the head is replaced. Nobody may write meanwhile.
"""

from __future__ import annotations

from pathlib import Path

from hybrid_search.backends.base import IndexVersion, Writer, check_counts
from hybrid_search.backends.embedded.failures import translate_errors
from hybrid_search.backends.embedded.head import Head, read_head
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.embedded.versions import create_version, remove_version, sweep_versions
from hybrid_search.backends.embedded.writer import EmbeddedWriter
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import IndexSpec, check_spec
from hybrid_search.errors import IndexMissingError
from hybrid_search.text import window_policy


class NextVersion(IndexVersion):
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
            self._new = Head(spec, current.version + 1)
            sweep_versions(folder, current)  # of a run that was killed
            create_version(folder, self._new)
        except BaseException:
            lock.release()
            raise

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Return a writer of the new version; raises ModelError if that is for another spec."""
        check_spec(index, self._new.spec, spec)
        return EmbeddedWriter(self._folder, self._new, None, keeps_empty=True)

    def check(self, expected_documents: int) -> None:
        """Raise IndexStoreError unless this version holds so many documents, which are whole."""
        with translate_errors(self._folder):
            new = Snapshot(self._folder, self._new)
            firsts = new.records.find_records(new.records.match_firsts())
        expected_passages = sum(first.passages for first in firsts)
        check_counts(new.count_documents(), expected_documents, len(new), expected_passages)

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
