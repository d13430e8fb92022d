"""Lets threads in by turns: more than there are cores would only hand Python's lock around."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets a limited number of threads in at once, in the order in which they came."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a place, and keep it during the block."""
        turn = threading.Event()
        with self._lock:
            self._queue.append(turn)
            self._let_in()
        try:
            turn.wait()
            yield
        finally:
            with self._lock:
                if turn in self._queue:  # Ctrl-C while it waited
                    self._queue.remove(turn)
                else:
                    self._free += 1
                    self._let_in()

    def _let_in(self) -> None:
        """Let those in who have waited longest, as many as there are places."""
        while self._free and self._queue:
            self._free -= 1
            self._queue.popleft().set()
