"""Iterators that run ahead in a thread, by a bounded number of items."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1
LINES_AHEAD = 16
"""Maximum lines read ahead, of up to 10 MB each."""
LEAVE_SECONDS, END_SECONDS = 5.0, 1.0
"""Grace periods for the thread to end: of a stage, and of lines after a request to stop. A thread
that waits for standard input is then abandoned: it may wait for ever.
"""


def prefetch(
    source: Iterator[T],
    ahead: int,
    stop_event: threading.Event | None = None,
    join_timeout: float = LEAVE_SECONDS,
) -> Generator[T, None, None]:
    """Yield the items of `source`, which is read up to `ahead` items ahead in another thread.

    An error of the source is raised here; closing this iterator stops the thread. When `stop_event`
    is set, no further item is taken from the source; items already taken are still yielded, and a
    blocked source is not waited for. A thread that does not end is abandoned after `join_timeout`
    seconds.
    """
    items: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(ahead)
    stop_requested, reader_closed = stop_event or threading.Event(), threading.Event()

    def put_unless_closed(item: tuple[T] | BaseException | None) -> bool:
        while not reader_closed.is_set():
            with suppress(queue.Full):
                items.put(item, timeout=POLL_SECONDS)
                return True
        return False

    def run() -> None:
        end: BaseException | None = None
        try:
            for item in source:
                if not put_unless_closed((item,)) or stop_requested.is_set():
                    break
        except BaseException as error:
            end = error
        finally:
            if isinstance(source, Generator):
                source.close()
        put_unless_closed(end)

    context = contextvars.copy_context()  # gives the thread's trace spans the right parent
    thread = threading.Thread(target=context.run, args=(run,), daemon=True)
    thread.start()
    try:
        while isinstance(item := _next(items, stop_requested), tuple):
            yield item[0]
        if item is not None:
            raise item
    finally:
        reader_closed.set()
        thread.join(join_timeout)


def read_until_stopped(stop_event: threading.Event, source: Iterator[T]) -> Iterator[T]:
    """Return the items of `source` until `stop_event`; a read that waits does not delay the end."""
    return prefetch(source, LINES_AHEAD, stop_event, END_SECONDS)


def _next(
    items: queue.Queue[tuple[T] | BaseException | None], stop_requested: threading.Event
) -> tuple[T] | BaseException | None:
    """Return the next item alone in a tuple, or the error of the source, or None at its end.

    After a request to stop, an item is returned only if it is already there.
    """
    while True:
        ending = stop_requested.is_set()
        try:
            return items.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if ending:
                return None
