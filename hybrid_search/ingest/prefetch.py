"""Stages that overlap: an iterator that runs ahead in a thread of its own, by a bounded number of items."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1
LEAVE_SECONDS = 5.0
"""After which a thread that does not end is left to itself: one that waits for standard input may do so for ever."""

Depths = dict[str, Callable[[], int]]
"""How many items wait behind each stage, by its name."""


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


def prefetch(source: Iterator[T], ahead: int, name: str = "", depths: Depths | None = None) -> Generator[T, None, None]:
    """The items of `source`, made in another thread. Its error is raised here; closing this iterator stops the thread.

    How many items wait is kept in `depths` under `name`.
    """
    items: queue.Queue[T | _End] = queue.Queue(ahead)
    if depths is not None:
        depths[name] = items.qsize
    stopped = threading.Event()
    context = contextvars.copy_context()  # the span in which this runs is that of the thread too
    thread = threading.Thread(target=context.run, args=(_run, source, items, stopped), daemon=True)
    thread.start()
    try:
        while not isinstance(item := items.get(), _End):
            yield item
        if item.error:
            raise item.error
    finally:
        stopped.set()
        thread.join(LEAVE_SECONDS)


def _run(source: Iterator[T], items: queue.Queue[T | _End], stopped: threading.Event) -> None:
    end = _End(None)
    try:
        for item in source:
            if not _put(items, item, stopped):
                return
    except BaseException as error:
        end = _End(error)
    finally:
        close = getattr(source, "close", None)
        if close:
            close()
    _put(items, end, stopped)


def _put(items: queue.Queue[T], item: T, stopped: threading.Event) -> bool:
    """Whether `item` was taken before the reader went away."""
    while not stopped.is_set():
        try:
            items.put(item, timeout=POLL_SECONDS)
            return True
        except queue.Full:
            continue
    return False
