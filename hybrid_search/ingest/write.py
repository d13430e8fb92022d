"""The write stage: shaped passages into the index, refused documents into the rejects file.

Passages of a document follow each other, but may be spread over blocks. `DocumentInFlight` is all
that is remembered of a document from one block to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hybrid_search.backends.base import Writer
from hybrid_search.errors import HybridSearchError, InputError
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import ParsedDocument, ShapedPassage
from hybrid_search.observability import tracing
from hybrid_search.text.types import Entry

IdAndHash = tuple[str, str]
"""Id and source hash of a document."""


@dataclass(slots=True, eq=False)
class DocumentInFlight:
    """The state of a document between its first passage and its last.

    It is open until it is refused (by the encoder or by the store) or whole (its last passage is
    written). Nothing more of a refused document is written.
    """

    parsed: ParsedDocument
    is_refused: bool = False
    is_whole: bool = False
    passages: int = 0
    """Passages written so far, all of them counted in the summary."""
    windows: int = 0
    """Covering windows of these passages, counted in the summary as spans."""

    @property
    def is_half_written(self) -> bool:
        """Return whether the store has some passages and waits for the others."""
        return self.passages > 0 and not self.is_whole


@dataclass(slots=True, eq=False)
class WriteStage:
    """Writes blocks, counts into `summary`, and notes in `checkpoint` which lines are done."""

    writer: Writer
    rejects: Rejects
    summary: Summary
    checkpoint: Checkpoint | None = None
    in_flight: DocumentInFlight | None = None
    """The document of the last passage: the next block may go on with it."""
    is_writing: bool = False
    """True while the store writes, and after it failed."""
    uncommitted: int = 0
    """Documents that are counted, and that the store may commit only with the one in flight."""

    def write_block(self, block: Sequence[ShapedPassage]) -> None:
        """Write the passages of `block`, except those of refused documents."""
        passages = [(self._follow(shaped.prepared.parsed), shaped.content) for shaped in block]
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
        last = block[-1].prepared
        if self.checkpoint:
            self.checkpoint.note(
                last.parsed.line, committed, complete=last.is_last, rejects=self.rejects
            )

    def note_rejects(self) -> None:
        """Tell the store what was refused since the last call."""
        if notes := self.rejects.notes():
            self.writer.note(notes)

    def _follow(self, parsed: ParsedDocument) -> DocumentInFlight:
        """Return the state of the document in flight, a new one if `parsed` is the next."""
        if self.in_flight is None or self.in_flight.parsed is not parsed:
            self.in_flight = DocumentInFlight(parsed)
        return self.in_flight

    def _write_entries(self, entries: Sequence[tuple[DocumentInFlight, Entry]]) -> list[IdAndHash]:
        """Return the documents that became whole by writing `entries` and are not refused.

        The store has these committed unless the last entry leaves a document half written: then it
        commits them with that one.
        """
        if not entries:
            return []
        with tracing.trace_block("ingest.write"), self.summary.time_stage("write"):
            self.is_writing = True
            refusals = self.writer.write([entry for _, entry in entries])
            self.is_writing = False
        for document, entry in entries:
            self._count(document, 1, entry.spans)
            document.is_whole = entry.is_last
        documents = {id(document.parsed.document): document for document, _ in entries}
        refused = {id(refusal.document) for refusal in refusals}
        accepted = [
            document.parsed
            for key, document in documents.items()
            if document.is_whole and key not in refused
        ]
        self.summary.documents += len(accepted)
        self.uncommitted = 0 if entries[-1][1].is_last else self.uncommitted + len(accepted)
        for refusal in refusals:  # last: if one cannot be noted, the others are counted
            self._refuse(documents[id(refusal.document)], refusal.reason, refusal.detail)
        return [(parsed.document.id, parsed.source_hash) for parsed in accepted]

    @contextmanager
    def commit_if_interrupted(self) -> Iterator[None]:
        """If the block fails, commit the whole documents, or take back what is counted of them.

        So all documents that the summary counts are in the index. A store that fails itself is left
        alone, and what it had not yet committed by its contract is not counted.
        """
        try:
            yield
        except BaseException:
            if self.is_writing or not self._commit_whole_documents():
                self.summary.documents -= self.uncommitted
            raise

    def _commit_whole_documents(self) -> bool:
        """Forget the unfinished document; return whether those before it could be committed."""
        if self.in_flight and self.in_flight.is_half_written:
            self._count(self.in_flight, -self.in_flight.passages, -self.in_flight.windows)
        try:
            self.writer.abandon()
        except HybridSearchError:  # the run ends with the error that came before
            return False
        return True

    def _refuse(self, document: DocumentInFlight, reason: str, detail: str) -> None:
        """Reject `document`, once, and take back what was written and counted of it."""
        if document.is_refused:
            return
        document.is_refused = True
        self.rejects.add(document.parsed.line, reason, detail, document.parsed.document.id)
        if document.is_half_written:
            self.writer.abandon()
        self._count(document, -document.passages, -document.windows)

    def _count(self, document: DocumentInFlight, passages: int, windows: int) -> None:
        document.passages += passages
        document.windows += windows
        self.summary.passages += passages
        self.summary.spans += windows
