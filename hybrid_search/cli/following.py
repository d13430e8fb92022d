"""``ingest --follow``: a folder is watched until somebody sends SIGTERM, or presses Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hybrid_search import logs
from hybrid_search.cli import watching
from hybrid_search.errors import UsageError
from hybrid_search.ingest import sources, stopping
from hybrid_search.ingest.follow import Inbox, follow
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.tables import Columns
from hybrid_search.ingest.worker import Report
from hybrid_search.progress import progress, said


class Ingest(Protocol):
    """`Client.ingest_lines`, with all else given."""

    def __call__(self, lines: Iterator[Line], *, rejects: Path, report: Report) -> Summary: ...


def followed(ingest: Ingest, folder: Path, columns: Columns, rejects: Path | None, seen: Report) -> Summary:
    """Ingest what comes into `folder` until this process is asked to stop; a line on standard error for each file. Raises UsageError."""
    if rejects:
        raise UsageError(f"--rejects {rejects} is not for --follow, which writes refused documents beside their file in failed/: leave it out")
    inbox = Inbox(folder)
    inbox.prepare()

    def one(file: Path, rejects: Path) -> Summary:
        lines = stopping.until(stopped, sources.read([str(file)], columns))
        with progress(None) as shown:
            return ingest(lines, rejects=rejects, report=watching.both(seen, shown))

    with stopping.on_signals() as stopped:
        logs.tell(f"watching {folder} for files, until SIGTERM or Ctrl-C")
        return follow(inbox, one, stopped.is_set, _told)


def _told(now: Path, summary: Summary) -> None:
    logs.tell(f"{now}: {said(summary)}", extra=summary.to_dict())
