"""What makes an ingest outlast kills: it drains at a signal, begins behind its checkpoint, and
tries again what was refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from hybrid_search.errors import UsageError
from hybrid_search.ingest import shutdown
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.sources import rejected
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine

CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="File that notes how many lines are done: the same command after a kill begins behind them.",
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        help="Seconds for which a server that takes nothing is waited for, 0: a few tries. Default: HYBRID_SEARCH_PATIENCE, else 600.",
        min=0,
    ),
]


class IngestResumable(Protocol):
    """`Client.ingest_lines`, with all else given."""

    def __call__(
        self, lines: Iterator[SourceLine], *, rejects: Path, checkpoint: Checkpoint | None
    ) -> Summary: ...


def check(checkpoint: Path | None, **incompatible: object) -> None:
    """Raise UsageError for a `checkpoint` beside one of the `others`, of whose lines none is noted."""
    for name in (name for name, value in incompatible.items() if checkpoint and value):
        raise UsageError(
            f"--checkpoint is for files, and --{name.replace('_', '-')} was given: leave it out, for what is done is skipped"
        )


def open_checkpoint(
    checkpoint: Path | None, files: Sequence[str], *run: object
) -> Checkpoint | None:
    """The note in `checkpoint` of these files; None where none is asked for.

    `run` is all that says which of their documents go where: a note of another run does not hold.
    """
    return Checkpoint(checkpoint, " ".join(map(repr, run)), files) if checkpoint else None


def run_resumable(
    ingest: IngestResumable,
    lines: Iterator[SourceLine],
    rejects: Path,
    retry: Path | None,
    checkpoint: Checkpoint | None,
) -> Summary:
    """Run `ingest`, which SIGTERM or SIGINT lets end with the lines that were read by then."""
    fresh = rejected.make_retry_path(rejects) if retry else rejects
    with shutdown.stop_on_signals() as stop_event:
        summary = ingest(
            shutdown.read_until_stopped(stop_event, lines), rejects=fresh, checkpoint=checkpoint
        )
    summary.stopped = stop_event.is_set()
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
    rejected.settle(fresh, rejects, retry)
    summary.rejected = str(rejects) if summary.failed else None
