"""Asked to stop, an ingest drains: it reads no further line, and what it has read is encoded,
written and committed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from hybrid_search.ingest.prefetch import prefetch

T = TypeVar("T")

AHEAD = 16
"""Items that are read ahead, at most: lines of up to 10 MB."""
END_SECONDS = 1.0
"""For which the reader may end what it is at, as a page of a server; who waits for standard input
is left.
"""

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOPPING_MESSAGE = b"stopping: what was read is being finished; a second signal ends at once\n"


def read_until_stopped(stop_event: threading.Event, source: Iterator[T]) -> Iterator[T]:
    """The items of `source` until `stopped` is set; those that were read by then are still given.

    They are read in a thread of their own: one that waits for standard input, or for a server, does
    not hold up the end.
    """
    return prefetch(source, AHEAD, stop_event=stop_event, join_timeout=END_SECONDS)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM or SIGINT sets while the block runs, for a command: a library leaves
    signals alone.

    A second signal ends the process.
    """
    stop_event = threading.Event()
    old_handlers = {signal_number: signal.getsignal(signal_number) for signal_number in SIGNALS}

    def stop(_: int, __: FrameType | None) -> None:
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_DFL)
        os.write(2, STOPPING_MESSAGE)  # a print could be what was interrupted
        stop_event.set()

    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield stop_event
        return
    try:
        for signal_number in SIGNALS:
            signal.signal(signal_number, stop)
        yield stop_event
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)
