"""Show progress on standard error: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

LINE_SECONDS = 5.0


@contextmanager
def progress(total_bytes: int | None) -> Iterator[Callable[[Summary], None]]:
    """Yield a function that shows a summary.

    `total_bytes` is the size of the sources, None if it is unknown. Where logs are JSON, the lines
    are records.
    """
    console = Console(stderr=True)
    if logs.is_structured() or not console.is_terminal:
        yield _LineReporter()
        return
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=total_bytes)
        yield lambda summary: bar.update(
            task, completed=summary.bytes, description=format_summary(summary)
        )


class _LineReporter:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, summary: Summary) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            logs.log_or_print(format_summary(summary), extra=summary.to_dict())
