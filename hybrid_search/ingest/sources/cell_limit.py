"""Raises the cell size limit of the csv module while a row is read."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CellLimit:
    """A counter of concurrent readers, because the limit applies to the whole process.

    The first concurrent reader sets the limit, and the last one restores it. A limit that other
    code has set meanwhile stays.
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
"""The only instance: two could not coordinate."""
