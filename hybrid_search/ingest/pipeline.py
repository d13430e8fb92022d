"""The loop: read and prepare -> encode -> shape and write, each ahead of the next in a thread of
its own, by a bounded number of blocks.

A block is some passages, not some documents, so that a text of 5 MB passes through in the same
memory as a chat of two lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_search.backends.base import Writable, Writer
from hybrid_search.backends.types import IndexSpec
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.encode import EncodingOrError, FailureFilter
from hybrid_search.ingest.executors.local import Executor, as_executor
from hybrid_search.ingest.prefetch import prefetch
from hybrid_search.ingest.prepare import Preparation
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen_ids import SeenIds
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import PreparedPassage, SourceLine
from hybrid_search.observability import tracing
from hybrid_search.text import window_policy
from hybrid_search.text.filters import check_where
from hybrid_search.text.types import Document, Encoding, Entry, TokenCodes

BLOCK_PASSAGES = 64
"""About 6,000 words: enough for the encoder to sort by length, 13 MB of token vectors."""

AHEAD = 2
"""Blocks that a stage may be ahead of the next."""

Block = Sequence[PreparedPassage]
IdAndHash = tuple[str, str]
"""Id and source hash of a document."""
Report = Callable[[Summary], None]


def ignore_report(_: Summary) -> None:
    """Progress that nobody looks at."""


def ingest(
    lines: Iterable[SourceLine],
    backend: Writable,
    encoder: Encoder | Executor,
    index: str,
    rejects: Path,
    policy: str = window_policy.DEFAULT_POLICY,
    report: Report = ignore_report,
    where: Mapping[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
    shard: Shard = ALL_DOCUMENTS,
) -> Summary:
    """Index those documents of `lines` that are `shard`'s and fulfil `where`; refused ones go to
    the file `rejects`, the others go on.

    `report` is called when it begins and after each block.

    A `checkpoint` passes over the lines that it says are done, and is kept by the way; who reads
    the lines knows when it is to `finish`. Raises IndexStoreError when the store cannot go on (what
    was committed stays), IndexBusyError, ModelError.
    """
    window_policy.parse(policy)  # before an index is made for a policy that is none
    conditions = check_where(where)
    summary, rejects_writer, seen_ids = Summary(), Rejects(rejects), SeenIds()
    spec, started_at = IndexSpec.from_encoder(encoder.info, policy), time.perf_counter()
    try:
        with tracing.trace_block("ingest"), backend.writer(index, spec) as writer:
            remaining_lines = (
                checkpoint.iterate_remaining(lines, writer.read_source_hashes, rejects_writer)
                if checkpoint
                else lines
            )
            prepared = Preparation(
                spec,
                writer.read_source_hashes,
                rejects_writer,
                seen_ids,
                summary,
                conditions,
                shard,
            ).blocks(remaining_lines, BLOCK_PASSAGES)
            blocks = prefetch(
                tracing.trace_iterations("ingest.read", prepared), AHEAD, "read", summary.queues
            )
            write_stage = _WriteStage(
                writer,
                spec,
                rejects_writer,
                _Tally(summary),
                FailureFilter(rejects_writer),
                checkpoint,
            )
            with closing(
                prefetch(
                    _encode_blocks(blocks, as_executor(encoder), summary),
                    AHEAD,
                    "encode",
                    summary.queues,
                )
            ) as encoded_blocks:
                report(summary)
                for block, results in encoded_blocks:
                    write_stage.write_block(block, results)
                    summary.seconds = time.perf_counter() - started_at
                    report(summary)
            _write_notes(writer, rejects_writer)
    finally:
        rejects_writer.close()
        seen_ids.close()
    summary.failed, summary.rejected = (
        rejects_writer.count,
        str(rejects) if rejects_writer.count or rejects_writer.carried else None,
    )
    summary.resumed = checkpoint.resumed_lines if checkpoint else 0
    summary.seconds = time.perf_counter() - started_at
    return summary


def _write_notes(writer: Writer, rejects: Rejects) -> None:
    if notes := rejects.notes():
        writer.note(notes)


def _encode_blocks(
    blocks: Iterator[Block], executor: Executor, summary: Summary
) -> Iterator[tuple[Block, list[EncodingOrError]]]:
    jobs = (
        (
            block,
            [
                text
                for prepared in block
                for text in passage_codes.encoder_texts(
                    prepared.parsed.document, [prepared.passage]
                )
            ],
        )
        for block in blocks
    )
    for block, results in executor.run(jobs, summary):
        summary.tokens += sum(
            len(encoding.offsets) for encoding in results if isinstance(encoding, Encoding)
        )
        yield block, results


@dataclass(frozen=True, slots=True, eq=False)
class _WriteStage:
    """The last stage: shapes and writes what is encoded, and tells of what is refused and of what
    is done.
    """

    writer: Writer
    spec: IndexSpec
    rejects: Rejects
    tally: _Tally
    failure_filter: FailureFilter
    checkpoint: Checkpoint | None

    def write_block(self, block: Block, results: Sequence[EncodingOrError]) -> None:
        """Write the documents that end in `block`, but those that the encoder or the store does not
        take.
        """
        good_passages, encodings, must_roll_back = self.failure_filter.drop_failed(
            block, results, self.tally.refused_document
        )
        if must_roll_back:
            self.writer.abandon()
            self.tally.abandon()
        committed = self._write(
            good_passages, _shape_entries(good_passages, encodings, self.spec, self.tally.summary)
        )
        _write_notes(self.writer, self.rejects)
        if self.checkpoint:
            self.checkpoint.note(
                block[-1].parsed.line, committed, complete=block[-1].is_last, rejects=self.rejects
            )

    def _write(self, block: Block, entries: Sequence[Entry]) -> list[IdAndHash]:
        """Write `entries`, the passages of `block`; which documents the store now has whole, or has
        when it has all of the last one.
        """
        with tracing.trace_block("ingest.write"), self.tally.summary.time_stage("write"):
            refusals = self.writer.write(entries) if entries else []
        lines_by_document = {
            id(prepared.parsed.document): prepared.parsed.line for prepared in block
        }
        for refusal in refusals:
            self.rejects.add(
                lines_by_document[id(refusal.document)], refusal.reason, refusal.document.id
            )
        refused_ids = {
            id(self.tally.refused_document),
            *(id(refusal.document) for refusal in refusals),
        }
        self.tally.add(entries, [refusal.document for refusal in refusals])
        self.tally.summary.failed = self.rejects.count
        return [
            (entry.document.id, entry.source_hash)
            for entry in entries
            if entry.is_last and id(entry.document) not in refused_ids
        ]


def _shape_entries(
    block: Block, encodings: Sequence[Encoding], spec: IndexSpec, summary: Summary
) -> list[Entry]:
    with tracing.trace_block("ingest.shape"), summary.time_stage("shape"):
        token_codes = passage_codes.pack_token_codes(
            spec.dimension, [prepared.passage for prepared in block], encodings
        )
        return [
            _build_entry(prepared, tokens, spec.policy)
            for prepared, tokens in zip(block, token_codes, strict=True)
        ]


def _build_entry(prepared: PreparedPassage, tokens: TokenCodes, policy: str) -> Entry:
    parsed, spans = prepared.parsed, len(window_policy.window_bounds(tokens.counts, policy))
    return Entry(
        parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, spans
    )


@dataclass(slots=True)
class _Tally:
    """Counts what was taken into `summary`.

    A store may refuse a document when its last passage comes: then the others are taken back.
    """

    summary: Summary
    refused_document: Document | None = None
    """A document of which more passages will come, though it was refused."""
    passages: int = 0
    spans: int = 0
    """Counted of a document whose last passage has not come."""

    def add(self, entries: Sequence[Entry], refused_documents: Sequence[Document]) -> None:
        """Count the documents that end in `entries`, but those in `refused`."""
        refused_ids = {id(document) for document in (self.refused_document, *refused_documents)}
        for entry in entries:
            self._count(1, entry.spans)
            self.refused_document = entry.document if id(entry.document) in refused_ids else None
            if entry.is_last:
                self._end_document()

    def abandon(self) -> None:
        """Take back the document whose last passage has not come, and will not."""
        self._count(-self.passages, -self.spans)
        self.passages = self.spans = 0
        self.refused_document = None

    def _count(self, passages: int, spans: int) -> None:
        self.passages += passages
        self.spans += spans
        self.summary.passages += passages
        self.summary.spans += spans

    def _end_document(self) -> None:
        if self.refused_document:
            self._count(-self.passages, -self.spans)
        else:
            self.summary.documents += 1
        self.passages = self.spans = 0
