"""Word codes as queries read them: those that changed on the disk are never scored."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hybrid_search.backends.embedded import checksums, sql


class CheckedCodes:
    """Reads the word codes of one index for several threads, and checks each passage's once.

    The number of a passage is never given to another, and its codes never change. So those that
    were compared with their checksum are not compared again, which would take as long as scoring
    them. Damage that comes later is noticed by the next process, and where the passage is shown.
    """

    def __init__(self) -> None:
        self._sound: set[int] = set()

    def read(self, connection: sqlite3.Connection, passages: Sequence[int]) -> dict[int, bytes]:
        """Return the stored word codes of each of `passages` that still exists, in that order.

        Of those that are not as they were written there are no bytes.
        """
        unchecked = [passage for passage in passages if passage not in self._sound]
        written = dict(sql.read_codes_checksums(connection, unchecked)) if unchecked else {}
        to_check, stored = set(unchecked), dict[int, bytes]()
        for passage, data in sql.read_codes(connection, passages):
            # at once, while the bytes are in the processor's cache
            is_changed = passage in to_check and checksums.is_changed(data, written.get(passage))
            # an edited row of SQLite may hold any type
            stored[passage] = b"" if is_changed or not isinstance(data, bytes) else data
        self._sound.update(passage for passage, data in stored.items() if data)
        return stored
