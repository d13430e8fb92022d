"""One run of the command ``ingest``, until the source ends or a signal stops it.

At a signal, a run finishes the lines it has read. It resumes after its checkpoint, and can retry
refused documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.ingest import shutdown
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.options import IngestOptions, Report
from hybrid_search.ingest.sources import files, rejected
from hybrid_search.ingest.sources.choice import SourceChoice, open_input
from hybrid_search.ingest.sources.inbox import Inbox, follow
from hybrid_search.ingest.summary import Summary, format_summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs

IngestLines = Callable[[Iterator[SourceLine], IngestOptions], Summary]
"""Ingests lines, as `Client.run_ingest` does."""

ShowProgress = Callable[[int | None], AbstractContextManager[Report]]
"""Shows progress during a block, given the size of the source in bytes, or None if unknown."""


def run_ingest(
    ingest: IngestLines,
    source: SourceChoice,
    options: IngestOptions,
    checkpoint: Path | None,
    show_progress: ShowProgress,
) -> Summary:
    """Ingest `source`, of any kind, and record the lines done in the file `checkpoint`.

    Raises UsageError if the source cannot be read, or does not fit the options.

    Returns:
        The counts of the run; for a watched folder, of all its files.
    """
    if source.follow:
        return _follow_folder(ingest, source, source.follow, options, show_progress)
    url = settings(source.url).url
    options = replace(options, rejects=options.find_rejects(url))
    place = (
        *(url, options.index, source.read_options),
        *(options.where, options.shard, options.cleaning),
    )
    with (
        open_input(source, options.find_rejects()) as opened,
        show_progress(opened.size) as report_progress,
    ):
        options = options.reporting_to(report_progress)
        if checkpoint:
            what_goes_where = " ".join(map(repr, place))
            saved = Checkpoint(checkpoint, what_goes_where, opened.files)
            options = replace(options, checkpoint=saved)
        return _ingest_until_stopped(ingest, opened.lines, options, source.retry)


def _ingest_until_stopped(
    ingest: IngestLines, lines: Iterator[SourceLine], options: IngestOptions, retry: Path | None
) -> Summary:
    """Ingest `lines`; at SIGTERM or SIGINT, finish the lines read so far and stop."""
    rejects, checkpoint = options.find_rejects(), options.checkpoint
    fresh = rejected.make_retry_path(rejects) if retry else rejects
    with shutdown.stop_on_signals() as stop_event:
        lines = shutdown.read_until_stopped(stop_event, lines)
        summary = ingest(lines, replace(options, rejects=fresh))
    summary.stopped = stop_event.is_set()
    if checkpoint and not summary.stopped:
        checkpoint.finish()
    if retry:
        _settle_retry(summary, fresh, rejects, retry)
    return summary


def _settle_retry(summary: Summary, fresh: Path, rejects: Path, retry: Path) -> None:
    if summary.stopped:  # documents not retried yet are only in the old file
        fresh.unlink(missing_ok=True)
        summary.rejected = str(retry)
        return
    rejected.settle(fresh, rejects, retry)
    summary.rejected = str(rejects) if summary.failed else None


def _follow_folder(
    ingest: IngestLines,
    source: SourceChoice,
    folder: Path,
    options: IngestOptions,
    show_progress: ShowProgress,
) -> Summary:
    """Ingest each new file in `folder` until SIGTERM or SIGINT, and log a line for each."""
    if options.rejects:
        raise UsageError(
            f"--rejects {options.rejects} is not for --follow, which writes refused documents "
            "beside their file in failed/: leave it out"
        )
    inbox = Inbox(folder)
    inbox.prepare()

    def ingest_file(file: Path, rejects: Path) -> Summary:
        lines = files.read([str(file)], source.read_options)
        lines = shutdown.read_until_stopped(stop_event, lines)
        with show_progress(None) as report_progress:
            file_options = replace(options, rejects=rejects).reporting_to(report_progress)
            return ingest(lines, file_options)

    with shutdown.stop_on_signals() as stop_event:
        logs.log_or_print(f"watching {folder} for files, until SIGTERM or Ctrl-C")
        summary = follow(inbox, ingest_file, stop_event.is_set, _log_file)
    summary.stopped = stop_event.is_set()
    return summary


def _log_file(destination: Path, summary: Summary) -> None:
    logs.log_or_print(f"{destination}: {format_summary(summary)}", extra=summary.to_dict())
