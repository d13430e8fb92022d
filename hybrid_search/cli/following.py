"""``ingest --follow``: a folder is watched until somebody sends SIGTERM, or presses Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import typer

from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest import sources
from hybrid_search.ingest.follow import Inbox, follow
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.tables import Columns
from hybrid_search.progress import progress, said


def followed(
    client: Client, folder: Path, columns: Columns, index: str, policy: str | None, where: Mapping[str, Any] | None, rejects: Path | None
) -> Summary:
    """Ingest what comes into `folder` until this process is asked to stop; a line on standard error for each file. Raises UsageError."""
    if rejects:
        raise UsageError(f"--rejects {rejects} is not for --follow, which writes refused documents beside their file in failed/: leave it out")
    inbox = Inbox(folder)
    inbox.prepare()

    def ingest(file: Path, rejects: Path) -> Summary:
        lines = sources.read([str(file)], columns)
        with progress(None) as report:
            return client.ingest_lines(lines, index=index, rejects=rejects, policy=policy, report=report, where=where, stopped=stopped)

    with stoppable() as stopped:
        typer.echo(f"watching {folder} for files, until SIGTERM or Ctrl-C", err=True)
        return follow(inbox, ingest, stopped, _told)


def _told(now: Path, summary: Summary) -> None:
    typer.echo(f"{now}: {said(summary)}", err=True)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM or SIGINT has come. A second one does what it would have done without us."""
    asked = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, _: FrameType | None) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
