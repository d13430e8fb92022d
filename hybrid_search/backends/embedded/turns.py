"""Lets threads in by turns: more of them than there are cores would only wait for each other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets a limited number of threads in at once, in the order in which they came.

    They hold Python's lock most of the time, which more of them would only hand around.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a place, and keep it during the block."""
        self._wait()
        try:
            yield
        finally:
            self._leave()

    def _wait(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._queue.append(turn)
        try:
            turn.acquire()
        except BaseException:  # Ctrl-C
            self._give_up(turn)
            raise

    def _give_up(self, turn: threading.Lock) -> None:
        with self._lock:
            if turn in self._queue:
                self._queue.remove(turn)
                return
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._free += 1
