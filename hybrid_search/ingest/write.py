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
    """Passages written so far, all counted in the summary."""
    windows: int = 0
    """Covering windows of these passages, counted in the summary as spans."""

    @property
    def is_half_written(self) -> bool:
        """Return whether the store has some passages and waits for the others."""
        return self.passages > 0 and not self.is_whole


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
        self.summary.passages += len(entries)
        self.summary.spans += sum(entry.spans for _, entry in entries)
        documents = {id(document.parsed.document): document for document, _ in entries}
        refused = {id(refusal.document) for refusal in refusals}
        accepted = [
            document.parsed
            for key, document in documents.items()
            if document.is_whole and key not in refused
        ]
        self.summary.documents += len(accepted)
        self.uncommitted = 0 if entries[-1][1].is_last else self.uncommitted + len(accepted)
        for refusal in refusals:  # last, so that all are counted if a refusal cannot be recorded
            self._refuse(documents[id(refusal.document)], refusal.reason, refusal.detail)
        return [(parsed.document.id, parsed.source_hash) for parsed in accepted]

    @contextmanager
    def commit_if_interrupted(self) -> Iterator[None]:
        """If the block fails, commit the complete documents, or subtract them from the counts.

        So all documents in the summary are in the index. If the store itself failed, nothing more
        is written, and what its contract does not guarantee to be committed is not counted.
        """
        try:
            yield
        except BaseException:
            if not self.is_writing:
                if self.in_flight and self.in_flight.is_half_written:
                    self._uncount(self.in_flight)
                with suppress(HybridSearchError):  # the run ends with the earlier error
                    self.writer.abandon()
                    self.uncommitted = 0
            self.summary.documents -= self.uncommitted
            raise

    def _refuse(self, document: DocumentInFlight, reason: str, detail: str) -> None:
        """Reject `document` once, and undo what was written and counted of it."""
        if document.is_refused:
            return
        document.is_refused = True
        self.rejects.add(document.parsed.line, reason, detail, document.parsed.document.id)
        if document.is_half_written:
            self.writer.abandon()
        self._uncount(document)

    def _uncount(self, document: DocumentInFlight) -> None:
        self.summary.passages -= document.passages
        self.summary.spans -= document.windows
        document.passages = document.windows = 0
