"""Counts the bytes of answers that arrive from a server, for the plan of a query.

It is apart from `tracing`, as a query does not load OpenTelemetry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_traffic: ContextVar[Counter[str] | None] = ContextVar("traffic", default=None)


@contextmanager
def count_traffic() -> Iterator[Counter[str]]:
    """Count the bytes that servers answer during the block, in this thread or task.

    Yields:
        The count as ``answer_bytes``, if there is any: without headers, and unpacked.
    """
    traffic: Counter[str] = Counter()
    token = _traffic.set(traffic)
    try:
        yield traffic
    finally:
        _traffic.reset(token)


def note_answer(size: int) -> None:
    """Add the bytes of an answer, if anybody counts."""
    traffic = _traffic.get()
    if traffic is not None:
        traffic["answer_bytes"] += size
