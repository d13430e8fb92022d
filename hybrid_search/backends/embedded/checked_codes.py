"""Token codes as queries read them: those that changed on the disk are never scored."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hybrid_search.backends.embedded import checksums, schema, sql
from hybrid_search.text import token_codes
from hybrid_search.text.types import TokenCodes


class CheckedCodes:
    """Reads the token codes of one index for several threads, and checks each passage's once.

    The number of a passage is never given to another, and its codes never change. So those that
    were compared with their checksum are not compared again, which would take as long as scoring
    them. Damage that comes later is noticed by the next process, and where the passage is shown.
    """

    def __init__(self) -> None:
        self._sound: set[int] = set()

    def read(
        self, connection: sqlite3.Connection, passages: Sequence[int]
    ) -> dict[int, TokenCodes]:
        """Return the token codes of each of `passages` that still exists, by ascending number.

        They are `token_codes.UNREADABLE` where they are not those that were written.
        """
        data_by_passage = dict(sorted(sql.read_codes(connection, passages)))
        changed = self._find_changed(connection, data_by_passage)
        return {
            passage: token_codes.UNREADABLE if passage in changed else token_codes.read(data)
            for passage, data in data_by_passage.items()
        }

    def _find_changed(
        self, connection: sqlite3.Connection, data_by_passage: Mapping[int, bytes]
    ) -> set[int]:
        unchecked = [passage for passage in data_by_passage if passage not in self._sound]
        if not unchecked or not schema.has_checksums(connection):
            return set()
        written = dict(sql.read_codes_checksums(connection, unchecked))
        changed = {
            passage
            for passage in unchecked
            if checksums.is_changed(data_by_passage[passage], written.get(passage))
        }
        self._sound.update(set(unchecked) - changed)
        return changed
