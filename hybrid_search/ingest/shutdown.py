"""Graceful shutdown: an ingest that is asked to stop finishes the lines it has read.

These lines are encoded, written and committed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

from hybrid_search.ingest.prefetch import prefetch

T = TypeVar("T")

AHEAD = 16
"""Maximum items read ahead: lines of up to 10 MB."""
END_SECONDS = 1.0
"""Grace period for the reader thread to end, for example with a page of a server.

A thread that is blocked on standard input is abandoned.
"""

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOPPING_MESSAGE = b"stopping: what was read is being finished; a second signal ends at once\n"


def read_until_stopped(stop_event: threading.Event, source: Iterator[T]) -> Iterator[T]:
    """Return the items of `source` until `stop_event`, including those already read.

    They are read in a separate thread, so a read that waits for standard input or a server does not
    delay the end.
    """
    return prefetch(source, AHEAD, stop_event=stop_event, join_timeout=END_SECONDS)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM or SIGINT sets while the block runs.

    For commands only: a library must leave signals alone. A second signal ends the process.
    """
    stop_event = threading.Event()
    old_handlers = {signal_number: signal.getsignal(signal_number) for signal_number in SIGNALS}

    def stop(_: int, __: FrameType | None) -> None:
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_DFL)
        stop_event.set()
        with suppress(OSError):  # a broken standard error must not end the run
            os.write(2, STOPPING_MESSAGE)  # the signal may have interrupted a print

    if threading.current_thread() is not threading.main_thread():  # no handler can be set there
        yield stop_event
        return
    try:
        for signal_number in SIGNALS:
            signal.signal(signal_number, stop)
        yield stop_event
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)
