"""What makes an ingest outlast kills: it drains at a signal, begins behind its checkpoint, and tries again what was refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Protocol

import typer

from hybrid_search.errors import UsageError
from hybrid_search.ingest import again, stopping
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary

Retry = Annotated[Path | None, typer.Option(help="A rejects file, whose documents are tried again instead of a source.")]
Kept = Annotated[
    Path | None, typer.Option("--checkpoint", help="File that notes how many lines are done: the same command after a kill begins behind them.")
]
Patience = Annotated[
    float | None,
    typer.Option(
        help="Seconds for which a server that takes nothing is waited for, 0: a few tries. Default: HYBRID_SEARCH_PATIENCE, else 600.", min=0
    ),
]


class Ingest(Protocol):
    """`Client.ingest_lines`, with all else given."""

    def __call__(self, lines: Iterator[Line], *, rejects: Path, checkpoint: Checkpoint | None) -> Summary: ...


def check(retry: Path | None, checkpoint: Path | None, others: bool) -> None:
    """Raise UsageError for a `retry` beside what it takes the place of, or of a file that it cannot be of."""
    if retry and others:
        raise UsageError("both --retry and a source: give one of them")
    if retry and checkpoint:
        raise UsageError("--retry with --checkpoint: leave the checkpoint out, for what is done is skipped, and the file is kept until all was tried")
    if retry:
        again.check(retry)


def lasting(ingest: Ingest, lines: Iterator[Line], rejects: Path, retry: Path | None, checkpoint: Checkpoint | None) -> Summary:
    """Run `ingest`, which SIGTERM or SIGINT lets end with the lines that were read by then."""
    fresh = again.beside(rejects) if retry else rejects
    with stopping.on_signals() as stopped:
        summary = ingest(stopping.until(stopped, lines), rejects=fresh, checkpoint=checkpoint)
    summary.stopped = stopped.is_set()
    if checkpoint and not summary.stopped:
        checkpoint.finish()
    if retry:
        _settle(summary, fresh, rejects, retry)
    return summary


def _settle(summary: Summary, fresh: Path, rejects: Path, retry: Path) -> None:
    if summary.stopped:  # what was not tried is in the old file only
        fresh.unlink(missing_ok=True)
        summary.rejected = str(retry)
        return
    again.settle(fresh, rejects, retry)
    summary.rejected = str(rejects) if summary.failed else None
