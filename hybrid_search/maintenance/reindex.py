"""Replace an index by a new version, copied with its word codes or ingested from its sources."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hybrid_search.backends.base import Backend, IndexVersion
from hybrid_search.backends.types import IndexSpec
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.ingest.document_parser import rehash_source
from hybrid_search.ingest.options import IngestOptions, Report
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine


def copy_index(
    backend: Backend,
    index: str,
    policy: str | None,
    options: Mapping[str, str],
    report: Report,
    *,
    keep: bool = False,
) -> Summary:
    """Copy an index into its next version, and put that in its place.

    No text is encoded again, so only `policy` and `options` can change. With `keep` the old version
    stays under its own name; if the backend raises an error, it stays in place.

    Returns:
        The counts of the new version.
    """
    spec, _ = backend.read_head(index)
    summary, started_at = Summary(), time.perf_counter()
    new_spec = replace(spec, policy=policy or spec.policy)
    new_version = backend.create_next_version(index, new_spec, options)

    def report_progress(passages: int) -> None:
        summary.passages, summary.seconds = passages, time.perf_counter() - started_at
        report(summary)

    with _publish_or_discard(new_version, keep=keep):
        new_version.copy(rehash_source, report_progress)
    info = backend.describe_index(index)
    summary.documents, summary.passages, summary.spans = info.documents, info.passages, info.spans
    summary.seconds = time.perf_counter() - started_at
    return summary


def ingest_new_version(
    backend: Backend,
    encoder: Encoder,
    index: str,
    lines: Iterable[SourceLine],
    rejects: Path,
    policy: str,
    codes: int,
    options: Mapping[str, str],
    report: Report,
    *,
    keep: bool = False,
) -> Summary:
    """Ingest documents into the next version of an index, by this model, and put that in its place.

    If a document is refused, the index stays as it was, and only the rejects file is written.

    Returns:
        The summary of the ingest.

    Raises:
        IndexStoreError: If a document was refused.
    """
    spec = IndexSpec.from_encoder(encoder.info, policy, codes)
    new_version = backend.create_next_version(index, spec, options)
    with _publish_or_discard(new_version, keep=keep):
        ingest_options = IngestOptions(index, rejects, policy, codes, report)
        summary = ingest(lines, new_version, encoder, ingest_options)
        if summary.failed:
            raise IndexStoreError(
                f"{summary.failed} of {summary.read} documents were refused "
                f"(see {summary.rejected}), and index {index!r} was left as it was: "
                "correct or remove them, and run the same command again"
            )
        new_version.check(summary.documents - summary.duplicates)
    return summary


@contextmanager
def _publish_or_discard(new_version: IndexVersion, *, keep: bool) -> Iterator[None]:
    """Publish a version at the end of the block, or discard it if the block fails."""
    try:
        if keep and not new_version.keeps_old:
            raise UsageError(
                "an embedded index keeps no old version: copy its folder before, "
                "and run the same command without --keep"
            )
        yield
        new_version.publish(keep=keep)
    except BaseException:
        new_version.discard()
        raise
