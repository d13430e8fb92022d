"""A new version of an index in the place of the old one: copied with its token codes, or ingested anew from its sources."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hybrid_search.backends.base import Backend, IndexSpec, Version
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import IndexStoreError
from hybrid_search.ingest.documents import rehashed
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.worker import Report, ingest


def copied(backend: Backend, index: str, policy: str | None, options: Mapping[str, str], report: Report, *, keep: bool = False) -> Summary:
    """Copy `index` into its next version: no text is encoded again, so only `policy` and `options` can change. Raises IndexStoreError, UsageError."""
    held, _ = backend.head(index)
    summary, began = Summary(), time.perf_counter()
    new = backend.next_version(index, replace(held, policy=policy or held.policy), options)

    def so_far(passages: int) -> None:
        summary.passages, summary.seconds = passages, time.perf_counter() - began
        report(summary)

    with _published(new, keep=keep):
        new.copy(rehashed, so_far)
    info = backend.describe(index)
    summary.documents, summary.passages, summary.spans = info.documents, info.passages, info.spans
    summary.seconds = time.perf_counter() - began
    return summary


def ingested(
    backend: Backend,
    encoder: Encoder,
    index: str,
    lines: Iterable[Line],
    rejects: Path,
    policy: str,
    options: Mapping[str, str],
    report: Report,
    *,
    keep: bool = False,
) -> Summary:
    """Ingest `lines` into the next version of `index`, by this model. Where a document was refused nothing changes but the rejects file."""
    new = backend.next_version(index, IndexSpec.of(encoder.info, policy), options)
    with _published(new, keep=keep):
        summary = ingest(lines, new, encoder, index, rejects, policy, report)
        if summary.failed:
            raise IndexStoreError(
                f"{summary.failed} of {summary.read} documents were refused (see {summary.rejected}), and index {index!r} was left as it was: "
                "mend or remove them, and run the same command again"
            )
        new.check(summary.documents - summary.duplicates)
    return summary


@contextmanager
def _published(new: Version, *, keep: bool) -> Iterator[None]:
    """Publish a version at the end of the block, or discard it."""
    try:
        yield
        new.publish(keep=keep)
    except BaseException:
        new.discard()
        raise
