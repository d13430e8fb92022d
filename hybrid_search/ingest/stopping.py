"""Asked to stop, an ingest drains: it reads no further line, and what it has read is encoded, written and committed."""

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
"""For which the reader may end what it is at, as a page of a server; who waits for standard input is left."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAID = b"stopping: what was read is being finished; a second signal ends at once\n"


def until(stopped: threading.Event, source: Iterator[T]) -> Iterator[T]:
    """The items of `source` until `stopped` is set; those that were read by then are still given.

    They are read in a thread of their own: one that waits for standard input, or for a server, does not hold up the end.
    """
    return prefetch(source, AHEAD, stopped=stopped, leave=END_SECONDS)


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
