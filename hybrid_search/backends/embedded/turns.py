"""Lets threads in by turns: more of them than there are cores would only wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count


class Turns:
    """Lets a limited number of threads in at once, in the order in which they came.

    Calls that end a query go before those that begin one: then the first of many queries is
    answered long before the last, and few of them hold their candidates meanwhile.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._tickets = count()
        self._queue: list[tuple[bool, int, threading.Lock]] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self, *, begins_query: bool) -> Iterator[None]:
        """Wait for a place, and keep it during the block."""
        self._wait(begins_query)
        try:
            yield
        finally:
            self._leave()

    def _wait(self, begins_query: bool) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            heappush(self._queue, (begins_query, next(self._tickets), turn))
        try:
            turn.acquire()
        except BaseException:  # Ctrl-C
            self._give_up(turn)
            raise

    def _give_up(self, turn: threading.Lock) -> None:
        with self._lock:
            waiting = [entry for entry in self._queue if entry[-1] is not turn]
            was_waiting = len(waiting) < len(self._queue)
            self._queue = sorted(waiting)
        if not was_waiting:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            if self._queue:
                heappop(self._queue)[-1].release()
            else:
                self._free += 1
