"""The loop: read and prepare -> encode -> shape and write, each ahead of the next in a thread of its own, by a bounded number of blocks.

A block is some passages, not some documents, so that a text of 5 MB passes through in the same memory as a chat of two lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_search import covering, phrase, telemetry
from hybrid_search.backends.base import IndexSpec, Writable, Writer
from hybrid_search.encoder.base import Encoder
from hybrid_search.filters import checked
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.encoding import Found, Sieve
from hybrid_search.ingest.engine import Engine, engine
from hybrid_search.ingest.prefetch import prefetch
from hybrid_search.ingest.prepare import Preparation, Prepared
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen import Seen
from hybrid_search.ingest.shards import WHOLE, Shard
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.types import Document, Encoding, Entry, TokenCodes

BLOCK_PASSAGES = 64
"""About 6,000 words: enough for the encoder to sort by length, 13 MB of token vectors."""

AHEAD = 2
"""Blocks that a stage may be ahead of the next."""

Block = Sequence[Prepared]
Known = tuple[str, str]
"""Id and source hash of a document."""
Report = Callable[[Summary], None]


def unreported(_: Summary) -> None:
    """Progress that nobody looks at."""


def ingest(
    lines: Iterable[Line],
    backend: Writable,
    encoder: Encoder | Engine,
    index: str,
    rejects: Path,
    policy: str = covering.DEFAULT_POLICY,
    report: Report = unreported,
    where: Mapping[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
    shard: Shard = WHOLE,
) -> Summary:
    """Index those documents of `lines` that are `shard`'s and fulfil `where`; refused ones go to the file `rejects`, the others go on. `report` is
    called when it begins and after each block.

    A `checkpoint` passes over the lines that it says are done, and is kept by the way; who reads the lines knows when it is to `finish`.
    Raises IndexStoreError when the store cannot go on (what was committed stays), IndexBusyError, ModelError.
    """
    covering.parse(policy)  # before an index is made for a policy that is none
    selected = checked(where)
    summary, refused, seen = Summary(), Rejects(rejects), Seen()
    spec, began = IndexSpec.of(encoder.info, policy), time.perf_counter()
    try:
        with telemetry.span("ingest"), backend.writer(index, spec) as writer:
            left = checkpoint.left(lines, writer.known, refused) if checkpoint else lines
            prepared = Preparation(spec, writer.known, refused, seen, summary, selected, shard).blocks(left, BLOCK_PASSAGES)
            blocks = prefetch(telemetry.spans("ingest.read", prepared), AHEAD, "read", summary.queues)
            writing = _Writing(writer, spec, refused, _Tally(summary), Sieve(refused), checkpoint)
            with closing(prefetch(_encoded(blocks, engine(encoder), summary), AHEAD, "encode", summary.queues)) as coming:
                report(summary)
                for block, found in coming:
                    writing.take(block, found)
                    summary.seconds = time.perf_counter() - began
                    report(summary)
            _note(writer, refused)
    finally:
        refused.close()
        seen.close()
    summary.failed, summary.rejected = refused.count, str(rejects) if refused.count or refused.carried else None
    summary.resumed = checkpoint.passed if checkpoint else 0
    summary.seconds = time.perf_counter() - began
    return summary


def _note(writer: Writer, rejects: Rejects) -> None:
    if notes := rejects.notes():
        writer.note(notes)


def _encoded(blocks: Iterator[Block], by: Engine, summary: Summary) -> Iterator[tuple[Block, list[Found]]]:
    jobs = ((block, [text for each in block for text in phrase.windows(each.parsed.document, [each.passage])]) for block in blocks)
    for block, found in by.run(jobs, summary):
        summary.tokens += sum(len(each.offsets) for each in found if isinstance(each, Encoding))
        yield block, found


@dataclass(frozen=True, slots=True, eq=False)
class _Writing:
    """The last stage: shapes and writes what is encoded, and tells of what is refused and of what is done."""

    writer: Writer
    spec: IndexSpec
    rejects: Rejects
    tally: _Tally
    sieve: Sieve
    checkpoint: Checkpoint | None

    def take(self, block: Block, found: Sequence[Found]) -> None:
        """Write the documents that end in `block`, but those that the encoder or the store does not take."""
        kept, encodings, back = self.sieve.good(block, found, self.tally.refused)
        if back:
            self.writer.abandon()
            self.tally.abandon()
        committed = self._write(kept, _shaped(kept, encodings, self.spec, self.tally.summary))
        _note(self.writer, self.rejects)
        if self.checkpoint:
            self.checkpoint.note(block[-1].parsed.line, committed, whole=block[-1].last, rejects=self.rejects)

    def _write(self, block: Block, entries: Sequence[Entry]) -> list[Known]:
        """Write `entries`, the passages of `block`; which documents the store now has whole, or has when it has all of the last one."""
        with telemetry.span("ingest.write"), self.tally.summary.timed("write"):
            refusals = self.writer.write(entries) if entries else []
        lines = {id(each.parsed.document): each.parsed.line for each in block}
        for refusal in refusals:
            self.rejects.add(lines[id(refusal.document)], refusal.reason, refusal.document.id)
        out = {id(self.tally.refused), *(id(refusal.document) for refusal in refusals)}
        self.tally.add(entries, [refusal.document for refusal in refusals])
        self.tally.summary.failed = self.rejects.count
        return [(each.document.id, each.source_hash) for each in entries if each.last and id(each.document) not in out]


def _shaped(block: Block, encodings: Sequence[Encoding], spec: IndexSpec, summary: Summary) -> list[Entry]:
    with telemetry.span("ingest.shape"), summary.timed("shape"):
        coded = phrase.pack(spec.dimension, [each.passage for each in block], encodings)
        return [_entry(each, tokens, spec.policy) for each, tokens in zip(block, coded, strict=True)]


def _entry(prepared: Prepared, tokens: TokenCodes, policy: str) -> Entry:
    parsed, spans = prepared.parsed, len(covering.bounds(tokens.counts, policy))
    return Entry(parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, spans)


@dataclass(slots=True)
class _Tally:
    """Counts what was taken into `summary`. A store may refuse a document when its last passage comes: then the others are taken back."""

    summary: Summary
    refused: Document | None = None
    """A document of which more passages will come, though it was refused."""
    passages: int = 0
    spans: int = 0
    """Counted of a document whose last passage has not come."""

    def add(self, entries: Sequence[Entry], refused: Sequence[Document]) -> None:
        """Count the documents that end in `entries`, but those in `refused`."""
        out = {id(document) for document in (self.refused, *refused)}
        for entry in entries:
            self._count(1, entry.spans)
            self.refused = entry.document if id(entry.document) in out else None
            if entry.last:
                self._end()

    def abandon(self) -> None:
        """Take back the document whose last passage has not come, and will not."""
        self._count(-self.passages, -self.spans)
        self.passages = self.spans = 0
        self.refused = None

    def _count(self, passages: int, spans: int) -> None:
        self.passages += passages
        self.spans += spans
        self.summary.passages += passages
        self.summary.spans += spans

    def _end(self) -> None:
        if self.refused:
            self._count(-self.passages, -self.spans)
        else:
            self.summary.documents += 1
        self.passages = self.spans = 0
