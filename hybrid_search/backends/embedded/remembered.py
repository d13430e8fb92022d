"""What one connection has read of an index, remembered until the index is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Sized
from typing import Generic, TypeVar

from hybrid_search.backends.embedded import schema

MAX_NUMBERS = 4_000_000
"""The most numbers of 8 bytes that are remembered of one kind for one connection: 32 MB."""

Value = TypeVar("Value", bound=Sized)


class Remembered(Generic[Value]):
    """The values that were read last, by keys; a value takes 8 bytes for each unit of its length.

    They are forgotten when the index is written. What is damaged later is noticed by the next
    process, as damaged word codes are.
    """

    def __init__(self) -> None:
        self._version: int | None = None
        self._values: dict[Hashable, Value] = {}
        self._numbers = 0

    def find(
        self, connection: sqlite3.Connection, key: Hashable, read: Callable[[], Value]
    ) -> Value:
        """Return the value of a key, which `read` reads by `connection` if it is not here."""
        with schema.read_transaction(connection):
            self._forget_old_version(connection)
            value = self._take(key)
            if value is None:
                value = read()
        self._put_last(key, value)
        return value

    def _forget_old_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version, self._numbers = version, 0
            self._values.clear()

    def _take(self, key: Hashable) -> Value | None:
        value = self._values.pop(key, None)
        if value is not None:
            self._numbers -= len(value)
        return value

    def _put_last(self, key: Hashable, value: Value) -> None:
        """Put a value last, and forget the first ones while there is no room for all."""
        self._values[key] = value
        self._numbers += len(value)
        while self._numbers > MAX_NUMBERS:
            self._take(next(iter(self._values)))
