"""Token codes as queries read them: those that changed on the disk are never scored."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

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
        written = self._read_unchecked(connection, passages)
        codes_by_passage: dict[int, TokenCodes] = {}
        changed: list[int] = []
        for passage, data in sql.read_codes(connection, passages):
            # at once, while the bytes are in the processor's cache
            if checksums.is_changed(data, written.get(passage)):
                changed.append(passage)
            else:
                codes_by_passage[passage] = token_codes.read(data)
        self._sound.update(codes_by_passage)
        codes_by_passage |= dict.fromkeys(changed, token_codes.UNREADABLE)
        return dict(sorted(codes_by_passage.items()))

    def _read_unchecked(
        self, connection: sqlite3.Connection, passages: Sequence[int]
    ) -> dict[int, int]:
        """Return the checksum of each of `passages` that was not compared with it yet."""
        unchecked = [passage for passage in passages if passage not in self._sound]
        if not unchecked or not schema.has_checksums(connection):
            return {}
        return dict(sql.read_codes_checksums(connection, unchecked))
