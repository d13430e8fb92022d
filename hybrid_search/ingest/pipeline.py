"""The pipeline: read and prepare, encode, shape, write. Each stage feeds the next.

Reading and encoding run ahead in their own threads, by a bounded number of blocks. Blocks consist
of passages, not documents, so a text of 5 MB takes no more memory than a chat of two lines.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import closing

from hybrid_search.backends.base import Writable
from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest.document_language import warn_of_languages
from hybrid_search.ingest.encode import LocalExecutor, encode_blocks, shape_blocks
from hybrid_search.ingest.executors import Executor
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.prefetch import prefetch
from hybrid_search.ingest.prepare import Preparation
from hybrid_search.ingest.redactions import load_recogniser
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen_ids import SeenIds
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.ingest.write import WriteStage
from hybrid_search.observability import tracing
from hybrid_search.text import window_policy
from hybrid_search.text.filters import check_where
from hybrid_search.text.residual_codes import DEFAULT_BITS, check_bits

_log = logging.getLogger(__name__)

BLOCK_PASSAGES = 64
"""About 6,000 words: enough for the encoder to sort by length, 13 MB of token vectors."""

AHEAD = 2
"""Blocks that a stage may be ahead of the next."""


def ingest(
    lines: Iterable[SourceLine],
    backend: Writable,
    encoder: Encoder | Executor,
    options: IngestOptions,
) -> Summary:
    """Index the documents of `lines` selected by `options`; refused ones go to the rejects file.

    With a checkpoint in `options`, lines already done are skipped, and the checkpoint is kept up to
    date. The caller must call its `finish`, as only the caller knows whether the lines are
    complete.

    Raises UsageError if the policy, codes or `where` are not valid, IndexBusyError if another
    process is writing the index, ModelError if the index was written with another model or the
    encoder fails on every text, IndexStoreError if the store cannot continue. Committed documents
    stay.

    Returns:
        The counts of the run.
    """
    policy = options.policy or DEFAULT_POLICY  # what is invalid must fail before it is created
    window_policy.parse(policy)
    check_where(options.where)
    spec = IndexSpec.from_encoder(encoder.info, policy, check_bits(options.codes or DEFAULT_BITS))
    recogniser = load_recogniser(options.recogniser) if options.recogniser else None
    checkpoint, started_at, summary = options.checkpoint, time.perf_counter(), Summary()
    rejects, seen_ids = Rejects(options.find_rejects()), SeenIds()
    try:
        with tracing.trace_block("ingest"), backend.writer(options.index, spec) as writer:
            look_up = writer.read_source_hashes
            preparation = Preparation(
                spec, look_up, rejects, seen_ids, summary, options, recogniser
            )
            write_stage = WriteStage(writer, rejects, summary, checkpoint)
            executor = encoder if isinstance(encoder, Executor) else LocalExecutor(encoder)

            # the stages are lazy: nothing runs until the loop asks the last one for a block
            read = checkpoint.iterate_remaining(lines, look_up, rejects) if checkpoint else lines
            prepared = preparation.blocks(read, BLOCK_PASSAGES)
            prepared = tracing.trace_iterations("ingest.read", prepared)
            encoded = prefetch(encode_blocks(prefetch(prepared, AHEAD), executor, summary), AHEAD)
            # stops both threads if a later stage fails
            with write_stage.commit_if_interrupted(), closing(encoded):
                options.report(summary)
                for block in shape_blocks(encoded, encoder, spec, summary):
                    write_stage.write_block(block)
                    summary.seconds = time.perf_counter() - started_at
                    options.report(summary)
            write_stage.note_rejects()
            warn_of_languages(summary.languages, encoder.info)
            if summary.unredacted:
                _log.warning(
                    "%d documents were left as they are: they are redacted in the index, and have "
                    "no redactions here. Give redactions or a recogniser, or delete them first",
                    summary.unredacted,
                )
            if summary.read and summary.excluded == summary.read:
                _log.warning("none of the %d documents that were read fulfils where", summary.read)
    finally:
        summary.failed, summary.reasons = rejects.count, rejects.reasons
        summary.rejected = str(rejects.path) if rejects.count or rejects.carried else None
        summary.resumed = checkpoint.resumed_lines if checkpoint else 0
        summary.seconds = time.perf_counter() - started_at
        seen_ids.close()
        rejects.close()
    return summary
