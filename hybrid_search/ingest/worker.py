"""The loop: read and prepare -> encode -> shape and write, each ahead of the next in a thread of its own, by a bounded number of blocks.

A block is some passages, not some documents, so that a text of 5 MB passes through in the same memory as a chat of two lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hybrid_search import covering, phrase
from hybrid_search.backends.base import IndexSpec, Writable, Writer
from hybrid_search.encoder.base import Encoder
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
    shard: Shard = WHOLE,
) -> Summary:
    """Index `shard`'s documents of `lines`; refused ones go to the file `rejects`, the others go on. `report` is called after each block.

    Raises IndexStoreError when the store cannot go on (what was committed stays), IndexBusyError, ModelError.
    """
    covering.parse(policy)  # before an index is made for a policy that is none
    summary, refused, seen = Summary(), Rejects(rejects), Seen()
    tally = _Tally(summary)
    spec, began = IndexSpec.of(encoder.info, policy), time.perf_counter()
    try:
        with backend.writer(index, spec) as writer:
            blocks = prefetch(Preparation(spec, writer.known, refused, seen, summary, shard).blocks(lines, BLOCK_PASSAGES), AHEAD)
            with closing(prefetch(_encoded(blocks, engine(encoder), summary), AHEAD)) as encoded:
                for block, encodings in encoded:
                    entries = _shaped(block, encodings, spec, summary)
                    _write(writer, block, entries, refused, tally)
                    _note(writer, refused)
                    summary.seconds = time.perf_counter() - began
                    report(summary)
            _note(writer, refused)
    finally:
        refused.close()
        seen.close()
    summary.failed, summary.rejected = refused.count, str(rejects) if refused.count else None
    summary.seconds = time.perf_counter() - began
    return summary


def _note(writer: Writer, rejects: Rejects) -> None:
    if notes := rejects.notes():
        writer.note(notes)


def _encoded(blocks: Iterator[Block], by: Engine, summary: Summary) -> Iterator[tuple[Block, list[Encoding]]]:
    jobs = ((block, [text for each in block for text in phrase.windows(each.parsed.document, [each.passage])]) for block in blocks)
    for block, encodings, seconds in by.run(jobs):
        summary.stages["encode"] += seconds
        summary.tokens += sum(len(encoding.offsets) for encoding in encodings)
        yield block, encodings


def _shaped(block: Block, encodings: Sequence[Encoding], spec: IndexSpec, summary: Summary) -> list[Entry]:
    with summary.timed("shape"):
        coded = phrase.pack(spec.dimension, [each.passage for each in block], encodings)
        return [_entry(each, tokens, spec.policy) for each, tokens in zip(block, coded, strict=True)]


def _entry(prepared: Prepared, tokens: TokenCodes, policy: str) -> Entry:
    parsed, spans = prepared.parsed, len(covering.bounds(tokens.counts, policy))
    return Entry(parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, spans)


def _write(writer: Writer, block: Block, entries: Sequence[Entry], rejects: Rejects, tally: _Tally) -> None:
    with tally.summary.timed("write"):
        refusals = writer.write(entries)
    lines = {id(each.parsed.document): each.parsed.line for each in block}
    for refusal in refusals:
        rejects.add(lines[id(refusal.document)], refusal.reason, refusal.document.id)
    tally.add(entries, [refusal.document for refusal in refusals])
    tally.summary.failed = rejects.count


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
