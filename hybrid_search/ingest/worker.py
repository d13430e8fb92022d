"""The loop: read and prepare -> encode -> shape and write, each ahead of the next in a thread of its own, by a bounded number of blocks.

A block is some passages, not some documents, so that a text of 5 MB passes through in the same memory as a chat of two lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from hybrid_search import covering, phrase
from hybrid_search.backends.base import IndexSpec, Writable, Writer
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest.prefetch import prefetch
from hybrid_search.ingest.prepare import Preparation, Prepared
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen import Seen
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
    encoder: Encoder,
    index: str,
    rejects: Path,
    policy: str = covering.DEFAULT_POLICY,
    report: Report = unreported,
) -> Summary:
    """Index the documents of `lines`; refused ones go to the file `rejects`, the others go on. `report` is called after each block.

    Raises IndexStoreError when the store cannot go on (what was committed stays), IndexBusyError, ModelError.
    """
    covering.parse(policy)  # before an index is made for a policy that is none
    summary, refused, seen = Summary(), Rejects(rejects), Seen()
    dropped: list[Document] = []
    spec, began = IndexSpec.of(encoder.info, policy), time.perf_counter()
    try:
        with backend.writer(index, spec) as writer:
            blocks = prefetch(Preparation(spec, writer.known, refused, seen, summary).blocks(lines, BLOCK_PASSAGES), AHEAD)
            with closing(prefetch(_encoded(blocks, encoder, summary), AHEAD)) as encoded:
                for block, encodings in encoded:
                    entries = _shaped(block, encodings, spec, summary)
                    _write(writer, block, entries, refused, dropped, summary)
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


def _encoded(blocks: Iterator[Block], encoder: Encoder, summary: Summary) -> Iterator[tuple[Block, list[Encoding]]]:
    for block in blocks:
        with summary.timed("encode"):
            encodings = encoder.encode([text for each in block for text in phrase.windows(each.parsed.document, [each.passage])])
        summary.tokens += sum(len(encoding.offsets) for encoding in encodings)
        yield block, encodings


def _shaped(block: Block, encodings: Sequence[Encoding], spec: IndexSpec, summary: Summary) -> list[Entry]:
    with summary.timed("shape"):
        coded = phrase.pack(spec.dimension, [each.passage for each in block], encodings)
        return [_entry(each, tokens, spec.policy) for each, tokens in zip(block, coded, strict=True)]


def _entry(prepared: Prepared, tokens: TokenCodes, policy: str) -> Entry:
    parsed, spans = prepared.parsed, len(covering.bounds(tokens.counts, policy))
    return Entry(parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, spans)


def _write(writer: Writer, block: Block, entries: Sequence[Entry], rejects: Rejects, dropped: list[Document], summary: Summary) -> None:
    """`dropped` holds the documents last refused: the next block may begin with more passages of one."""
    with summary.timed("write"):
        refusals = writer.write(entries)
    lines = {id(each.parsed.document): each.parsed.line for each in block}
    for refusal in refusals:
        rejects.add(lines[id(refusal.document)], refusal.reason, refusal.document.id)
    dropped[:] = [*dropped[-1:], *(refusal.document for refusal in refusals)]
    refused = {id(document) for document in dropped}
    taken = [entry for entry in entries if id(entry.document) not in refused]
    summary.documents += sum(entry.last for entry in taken)
    summary.passages += len(taken)
    summary.spans += sum(entry.spans for entry in taken)
    summary.failed = rejects.count
