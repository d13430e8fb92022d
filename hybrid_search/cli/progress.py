"""Progress on standard error: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hybrid_search.ingest.summary import Summary, format_summary
from hybrid_search.observability import logs

if TYPE_CHECKING:
    from hybrid_search.topics.run import MiningSummary

LINE_SECONDS = 5.0


Shown = TypeVar("Shown", Summary, "MiningSummary")
"""The type of summary that is shown."""


@contextmanager
def progress(total_bytes: int | None) -> Iterator[Callable[[Summary], None]]:
    """Yield a function that shows the summary of an ingest.

    `total_bytes` is the size of the sources, None if it is unknown.
    """
    with _show(total_bytes, format_summary, lambda summary: summary.bytes) as report:
        yield report


@contextmanager
def mining_progress(documents: int) -> Iterator[Callable[[MiningSummary], None]]:
    """Yield a function that shows the summary of a mining run over this many documents."""
    from hybrid_search.topics.run import format_summary

    with _show(documents, format_summary, lambda summary: summary.progress.documents) as report:
        yield report


@contextmanager
def _show(
    total: int | None, describe: Callable[[Shown], str], measure: Callable[[Shown], int]
) -> Iterator[Callable[[Shown], None]]:
    """Yield a function that shows a summary, as log records if logs are JSON."""
    console = Console(stderr=True)
    if logs.is_structured() or not console.is_terminal:
        yield _report_lines(describe)
        return
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda summary: bar.update(
            task, completed=measure(summary), description=describe(summary)
        )


def _report_lines(describe: Callable[[Shown], str]) -> Callable[[Shown], None]:
    """Return a function that logs a summary every few seconds."""
    last = time.monotonic()

    def report(summary: Shown) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            logs.log_or_print(describe(summary), extra=summary.to_dict())

    return report
