"""The passages that filters leave: read and checked once for a filter, and then remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from hybrid_search.backends.embedded import filter_sql
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.remembered import Remembered
from hybrid_search.text.filters import Condition


class AllowedPassages:
    """Finds the passages that filters leave, by one connection, and remembers the latest of them.

    They are forgotten when the index is written. Metadata that is damaged later is noticed by the
    next process, as damaged word codes are.
    """

    def __init__(self) -> None:
        self._remembered: Remembered[Numbers] = Remembered()

    def find(
        self,
        connection: sqlite3.Connection,
        conditions: Sequence[Condition],
        speakers: Sequence[str] = (),
    ) -> Numbers | None:
        """Return the passages of `conditions` in which one of `speakers` speaks.

        Without any of both the result is None. An index in which a condition reads something else
        than was written is an error.
        """
        if not conditions and not speakers:
            return None
        return self._remembered.find(
            connection,
            (tuple(conditions), tuple(speakers)),
            lambda: _read(connection, conditions, speakers),
        )


def _read(
    connection: sqlite3.Connection, conditions: Sequence[Condition], speakers: Sequence[str]
) -> Numbers:
    if not conditions:
        return filter_sql.read_passages_of_speakers(connection, speakers)
    allowed = filter_sql.read_allowed_passages(connection, conditions)
    filter_sql.check_filters(connection, conditions, len(allowed))
    if not speakers:
        return allowed
    of_speakers = filter_sql.read_passages_of_speakers(connection, speakers)
    return allowed[np.isin(allowed, of_speakers)]
