"""What happens while this process works, for those who watch it: spans for OpenTelemetry where its
API is installed, and counts of what passed by.
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
"""Of this process: ``retries``, requests and actions that a server was asked for again."""

_NOTHING: AbstractContextManager[Any] = nullcontext()


def trace_block(name: str) -> AbstractContextManager[Any]:
    """A span of this name around a block; nothing where OpenTelemetry's API is not installed."""
    return _NOTHING if _tracer is None else _tracer.start_as_current_span(name)


def trace_iterations(name: str, items: Iterator[T]) -> Iterator[T]:
    """`items`, with a span of this name around the making of each."""
    return items if _tracer is None else _iterate_traced(name, items)


def _iterate_traced(name: str, items: Iterator[T]) -> Iterator[T]:
    sentinel = object()
    while True:
        with trace_block(name):
            item = next(items, sentinel)
        if item is sentinel:
            return
        yield item  # type: ignore[misc] # it is no object of ours
