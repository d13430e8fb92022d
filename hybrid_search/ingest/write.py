"""The write stage: shaped passages into the index, refused documents into the rejects file.

The passages of a document are consecutive, but may be spread over blocks: a `ParsedDocument` keeps
what was written of it from one block to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hybrid_search.backends.base import Writer
from hybrid_search.errors import HybridSearchError, InputError
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import ParsedDocument, ShapedPassage
from hybrid_search.observability import tracing
from hybrid_search.text.types import Entry


@dataclass(slots=True, eq=False)
class WriteStage:
    """The write stage, which counts in `summary` and records finished lines in `checkpoint`."""

    writer: Writer
    rejects: Rejects
    summary: Summary
    checkpoint: Checkpoint | None = None
    is_writing: bool = False
    """True while the store is writing, and after it failed."""
    uncommitted: int = 0
    """Documents already counted that the store may commit only with the one in flight."""

    def write_block(self, block: Sequence[ShapedPassage]) -> None:
        """Write the passages of `block`, except those of refused documents."""
        for parsed, _, content in block:
            if isinstance(content, InputError):
                self._refuse(parsed, str(content), content.detail)
        entries = [
            (parsed, content)
            for parsed, _, content in block
            if isinstance(content, Entry) and not parsed.is_refused
        ]
        committed = self._write_entries(entries)
        self.summary.failed = self.rejects.count
        self.note_rejects()
        if self.checkpoint:
            last, passage, _ = block[-1]
            complete = passage.ordinal == last.passages - 1
            self.checkpoint.note(last.line, committed, complete=complete, rejects=self.rejects)

    def note_rejects(self) -> None:
        """Pass the refusals since the last call to the store."""
        if notes := self.rejects.notes():
            self.writer.note(notes)

    def _write_entries(
        self, entries: Sequence[tuple[ParsedDocument, Entry]]
    ) -> list[tuple[str, str]]:
        """Return id and source hash of the documents completed by writing `entries`.

        They are committed unless the last entry leaves a document half written; then the store
        commits them with that document.
        """
        if not entries:
            return []
        with tracing.trace_block("ingest.write"), self.summary.time_stage("write"):
            self.is_writing = True
            refusals = self.writer.write([entry for _, entry in entries])
            self.is_writing = False
        for parsed, entry in entries:
            parsed.written_passages += 1
            parsed.written_windows += entry.spans
            parsed.is_whole = entry.is_last
        documents = {id(parsed.document): parsed for parsed, _ in entries}
        refused = {id(refusal.document) for refusal in refusals}
        accepted = [
            parsed for key, parsed in documents.items() if parsed.is_whole and key not in refused
        ]
        self.summary.documents += len(accepted)
        self.summary.passages += sum(parsed.written_passages for parsed in accepted)
        self.summary.spans += sum(parsed.written_windows for parsed in accepted)
        self.uncommitted = 0 if entries[-1][1].is_last else self.uncommitted + len(accepted)
        for refusal in refusals:  # last, so that all are counted if a refusal cannot be recorded
            self._refuse(documents[id(refusal.document)], refusal.reason, refusal.detail)
        return [(done.document.id, done.source_hash) for done in accepted]

    @contextmanager
    def commit_if_interrupted(self) -> Iterator[None]:
        """If the block fails, commit the complete documents, or subtract them from the counts."""
        try:
            yield
        except BaseException:
            if not self.is_writing:  # a store that failed is left alone
                with suppress(HybridSearchError):  # the run ends with the earlier error
                    self.writer.abandon()
                    self.uncommitted = 0
            self.summary.documents -= self.uncommitted
            raise

    def _refuse(self, parsed: ParsedDocument, reason: str, detail: str) -> None:
        """Reject a document once, and undo what was written of it."""
        if parsed.is_refused:
            return
        parsed.is_refused = True
        self.rejects.add(parsed.line, reason, detail, parsed.document.id)
        if parsed.written_passages and not parsed.is_whole:
            self.writer.abandon()
