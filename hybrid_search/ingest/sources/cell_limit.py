"""Lifts the limit that the csv module puts on a cell, for as long as a row is read."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CellLimit:
    """Counts who reads rows, because the limit is one of the whole process.

    The first of several that read at once sets it, and the last one puts it back. A limit that
    somebody else has set meanwhile stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._usual = 0

    @contextmanager
    def lift(self, limit: int) -> Iterator[None]:
        """Allow cells of `limit` characters during the block, in all threads."""
        with self._lock:
            if not self._readers:
                self._usual = csv.field_size_limit(limit)
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers and csv.field_size_limit() == limit:
                    csv.field_size_limit(self._usual)


CELL_LIMIT = CellLimit()
"""The only one: two would not know of each other."""
