"""Trace what this process does: OpenTelemetry traces if its API is installed, and counters.

OpenTelemetry calls a traced block a span. Everywhere else in this project a span is a span of words
in a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

try:
    from opentelemetry import trace
except ImportError:
    _tracer = None
else:
    _tracer = trace.get_tracer("hybrid_search")

T = TypeVar("T")

counts: Counter[str] = Counter()
"""Counters of this process: ``retries``, the requests and actions sent to a server again."""

_NOTHING: AbstractContextManager[Any] = nullcontext()


def trace_block(name: str) -> AbstractContextManager[Any]:
    """Return a context that traces a block; it does nothing without OpenTelemetry's API."""
    return _NOTHING if _tracer is None else _tracer.start_as_current_span(name)


def trace_iterations(name: str, items: Iterator[T]) -> Iterator[T]:
    """Return `items`, with a trace around the making of each."""
    return items if _tracer is None else _iterate_traced(name, items)


def _iterate_traced(name: str, items: Iterator[T]) -> Iterator[T]:
    sentinel = object()
    while True:
        with trace_block(name):
            item = next(items, sentinel)
        if item is sentinel:
            return
        yield item  # type: ignore[misc] # not the sentinel, so a T
