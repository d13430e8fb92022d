"""Progress on standard error: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hybrid_search.ingest.summary import Summary, format_summary
from hybrid_search.observability import logs

if TYPE_CHECKING:
    from hybrid_search.topics.run import MiningSummary

LINE_SECONDS = 5.0

Shown = TypeVar("Shown", Summary, "MiningSummary")
"""The type of summary that is shown."""


def progress(total_bytes: int | None) -> AbstractContextManager[Callable[[Summary], None]]:
    """Return a context with a function that shows an ingest of sources of this size."""
    return _show(total_bytes, format_summary, lambda summary: summary.bytes)


def mining_progress(documents: int) -> AbstractContextManager[Callable[[MiningSummary], None]]:
    """Return a context with a function that shows a mining run over this many documents."""
    from hybrid_search.topics.run import format_summary

    return _show(documents, format_summary, lambda summary: summary.progress.documents)


@contextmanager
def _show(
    total: int | None, describe: Callable[[Shown], str], measure: Callable[[Shown], int]
) -> Iterator[Callable[[Shown], None]]:
    """Yield a function that shows a summary, as log records if logs are JSON."""
    console = Console(stderr=True)
    if logs.is_structured() or not console.is_terminal:
        yield _report_lines(describe)
        return
    description = TextColumn("{task.description}", markup=False)
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(BarColumn(), description, *times, console=console) as bar:
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
