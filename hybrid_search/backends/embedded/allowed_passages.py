"""The passages that filters leave: read and checked once for a filter, and then remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hybrid_search.backends.embedded import filter_sql, schema
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.text.filters import Condition

MAX_NUMBERS = 4_000_000
"""The most passage numbers that are remembered for one connection: 32 MB."""


class AllowedPassages:
    """Finds the passages that filters leave, by one connection, and remembers the latest of them.

    They are forgotten when the index is written. Metadata that is damaged later is noticed by the
    next process, as damaged token codes are.
    """

    def __init__(self) -> None:
        self._version: int | None = None
        self._remembered: dict[tuple[Condition, ...], Numbers] = {}

    def find(
        self, connection: sqlite3.Connection, conditions: Sequence[Condition]
    ) -> Numbers | None:
        """Return the passages that all of `conditions` leave, or None if there are no conditions.

        An index in which a condition reads something else than was written is an error.
        """
        if not conditions:
            return None
        key = tuple(conditions)
        with schema.read_transaction(connection):
            self._forget_old_version(connection)
            allowed = self._remembered.pop(key, None)
            if allowed is None:
                allowed = filter_sql.read_allowed_passages(connection, conditions)
                filter_sql.check_filters(connection, conditions, len(allowed))
        self._remember(key, allowed)
        return allowed

    def _forget_old_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._remembered.clear()

    def _remember(self, key: tuple[Condition, ...], allowed: Numbers) -> None:
        """Put a filter last, and forget the first ones while there is no room for all."""
        self._remembered[key] = allowed
        while sum(map(len, self._remembered.values())) > MAX_NUMBERS:
            self._remembered.pop(next(iter(self._remembered)))
