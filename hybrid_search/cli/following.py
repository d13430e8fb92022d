"""``ingest --follow``: a folder is watched until somebody sends SIGTERM, or presses Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hybrid_search.cli import watching
from hybrid_search.cli.progress import format_summary, progress
from hybrid_search.errors import UsageError
from hybrid_search.ingest import shutdown
from hybrid_search.ingest.pipeline import Report
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.sources.inbox import Inbox, follow
from hybrid_search.ingest.sources.tables import Columns
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs


class IngestLines(Protocol):
    """`Client.ingest_lines`, with all else given."""

    def __call__(
        self, lines: Iterator[SourceLine], *, rejects: Path, report: Report
    ) -> Summary: ...


def follow_folder(
    ingest: IngestLines,
    folder: Path,
    columns: Columns,
    rejects: Path | None,
    report_metrics: Report,
) -> Summary:
    """Ingest what comes into `folder` until this process is asked to stop; a line on standard error
    for each file.

    Raises UsageError.
    """
    if rejects:
        raise UsageError(
            f"--rejects {rejects} is not for --follow, which writes refused documents beside their file in failed/: leave it out"
        )
    inbox = Inbox(folder)
    inbox.prepare()

    def ingest_file(file: Path, rejects: Path) -> Summary:
        lines = shutdown.read_until_stopped(stop_event, files.read([str(file)], columns))
        with progress(None) as report_progress:
            return ingest(
                lines,
                rejects=rejects,
                report=watching.combine_reports(report_metrics, report_progress),
            )

    with shutdown.stop_on_signals() as stop_event:
        logs.log_or_print(f"watching {folder} for files, until SIGTERM or Ctrl-C")
        return follow(inbox, ingest_file, stop_event.is_set, _log_file)


def _log_file(destination: Path, summary: Summary) -> None:
    logs.log_or_print(f"{destination}: {format_summary(summary)}", extra=summary.to_dict())
