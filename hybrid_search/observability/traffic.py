"""Counts the bytes of answers that arrive from a server, for the plan of a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """Bytes of answers without their headers; unpacked, if they came compressed."""

    answer_bytes: int = 0


_current: ContextVar[Traffic | None] = ContextVar("traffic", default=None)


@contextmanager
def count_traffic() -> Iterator[Traffic]:
    """Count the answers that arrive during the block, in this thread or task."""
    traffic = Traffic()
    token = _current.set(traffic)
    try:
        yield traffic
    finally:
        _current.reset(token)


def note_answer(size: int) -> None:
    """Add the bytes of an answer, if anybody counts."""
    traffic = _current.get()
    if traffic is not None:
        traffic.answer_bytes += size
