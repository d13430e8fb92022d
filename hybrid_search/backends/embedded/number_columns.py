"""Reads columns of numbers at once.

SQLite joins the numbers of a column to one text, which numpy parses. A row of Python for each
number would take four times as long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def read_numbers(
    connection: sqlite3.Connection, query: str, values: Sequence[object] = ()
) -> Numbers:
    """Return the numbers of a query whose only value is made by ``group_concat``."""
    return parse_numbers(connection.execute(query, values).fetchone()[0])


def parse_numbers(joined: str | None) -> Numbers:
    """Return the numbers that SQLite joined by commas; None is what it makes of no rows."""
    return np.fromstring(joined or "", np.int64, sep=",")
