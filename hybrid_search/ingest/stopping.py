"""Asked to stop, an ingest drains: it reads no further line, and what it has read is encoded, written and committed."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

AHEAD = 16
"""Items that are read ahead, at most: lines of up to 10 MB."""
POLL_SECONDS = 0.1
END_SECONDS = 1.0
"""For which the reader may end what it is at, as a page of a server; who waits for standard input is left."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAID = b"stopping: what was read is being finished; a second signal ends at once\n"


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


def until(stopped: threading.Event, source: Iterator[T]) -> Iterator[T]:
    """The items of `source` until `stopped` is set; those that were read by then are still given.

    They are read in a thread of their own: one that waits for standard input, or for a server, does not hold up the end.
    """
    items: queue.Queue[T | _End] = queue.Queue(AHEAD)
    gone = threading.Event()
    reader = threading.Thread(target=_read, args=(source, items, stopped, gone), daemon=True)
    reader.start()
    try:
        while not isinstance(item := _next(items, stopped), _End):
            yield item
        if item.error:
            raise item.error
    finally:
        gone.set()
        reader.join(END_SECONDS)


def _next(items: queue.Queue[T | _End], stopped: threading.Event) -> T | _End:
    while True:
        ending = stopped.is_set()
        try:
            return items.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if ending:
                return _End()


def _read(source: Iterator[T], items: queue.Queue[T | _End], stopped: threading.Event, gone: threading.Event) -> None:
    end = _End()
    try:
        for item in source:
            _put(items, item, gone)
            if stopped.is_set() or gone.is_set():
                break
    except BaseException as error:
        end = _End(error)
    finally:
        close = getattr(source, "close", None)
        if close:
            close()
    _put(items, end, gone)


def _put(items: queue.Queue[T | _End], item: T | _End, gone: threading.Event) -> None:
    while not gone.is_set():
        try:
            items.put(item, timeout=POLL_SECONDS)
        except queue.Full:
            continue
        return


@contextmanager
def on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM or SIGINT sets while the block runs, for a command: a library leaves signals alone. A second signal ends the process."""
    stopped = threading.Event()
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def stop(_: int, __: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        os.write(2, SAID)  # a print could be what was interrupted
        stopped.set()

    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield stopped
        return
    try:
        for each in SIGNALS:
            signal.signal(each, stop)
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
