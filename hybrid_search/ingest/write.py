"""The write stage: shaped passages into the index, refused documents into the rejects file.

The passages of a document are consecutive, but may be spread over blocks. `DocumentInFlight` is the
state of a document kept from one block to the next.
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
class DocumentInFlight:
    """The state of a document between its first passage and its last."""

    parsed: ParsedDocument
    is_refused: bool = False
    """Whether the encoder or the store refused it; its further passages are not written."""
    is_whole: bool = False
    """Whether its last passage is written."""
    passages: int = 0
    """Passages written so far, counted in the summary once the document is complete."""
    windows: int = 0
    """Covering windows of these passages, counted as spans."""


@dataclass(slots=True, eq=False)
class WriteStage:
    """The write stage, which counts in `summary` and records finished lines in `checkpoint`."""

    writer: Writer
    rejects: Rejects
    summary: Summary
    checkpoint: Checkpoint | None = None
    in_flight: DocumentInFlight | None = None
    """The document of the last passage, which the next block may continue."""
    is_writing: bool = False
    """True while the store is writing, and after it failed."""
    uncommitted: int = 0
    """Documents already counted that the store may commit only with the one in flight."""

    def write_block(self, block: Sequence[ShapedPassage]) -> None:
        """Write the passages of `block`, except those of refused documents."""
        passages = [(self._follow(prepared.parsed), content) for prepared, content in block]
        for document, content in passages:
            if isinstance(content, InputError):
                self._refuse(document, str(content), content.detail)
        entries = [
            (document, content)
            for document, content in passages
            if isinstance(content, Entry) and not document.is_refused
        ]
        committed = self._write_entries(entries)
        self.summary.failed = self.rejects.count
        self.note_rejects()
        last, _ = block[-1]
        if self.checkpoint:
            self.checkpoint.note(
                last.parsed.line, committed, complete=last.is_last, rejects=self.rejects
            )

    def note_rejects(self) -> None:
        """Pass the refusals since the last call to the store."""
        if notes := self.rejects.notes():
            self.writer.note(notes)

    def _follow(self, parsed: ParsedDocument) -> DocumentInFlight:
        """Return the state of the document in flight, a new one if `parsed` is the next."""
        if self.in_flight is None or self.in_flight.parsed is not parsed:
            self.in_flight = DocumentInFlight(parsed)
        return self.in_flight

    def _write_entries(
        self, entries: Sequence[tuple[DocumentInFlight, Entry]]
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
        for document, entry in entries:
            document.passages += 1
            document.windows += entry.spans
            document.is_whole = entry.is_last
        documents = {id(document.parsed.document): document for document, _ in entries}
        refused = {id(refusal.document) for refusal in refusals}
        accepted = [
            document
            for key, document in documents.items()
            if document.is_whole and key not in refused
        ]
        self.summary.documents += len(accepted)
        self.summary.passages += sum(document.passages for document in accepted)
        self.summary.spans += sum(document.windows for document in accepted)
        self.uncommitted = 0 if entries[-1][1].is_last else self.uncommitted + len(accepted)
        for refusal in refusals:  # last, so that all are counted if a refusal cannot be recorded
            self._refuse(documents[id(refusal.document)], refusal.reason, refusal.detail)
        return [(done.parsed.document.id, done.parsed.source_hash) for done in accepted]

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

    def _refuse(self, document: DocumentInFlight, reason: str, detail: str) -> None:
        """Reject `document` once, and undo what was written of it."""
        if document.is_refused:
            return
        document.is_refused = True
        self.rejects.add(document.parsed.line, reason, detail, document.parsed.document.id)
        if document.passages and not document.is_whole:
            self.writer.abandon()
