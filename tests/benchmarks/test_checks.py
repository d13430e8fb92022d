"""The benchmark of the checks for damage: what it leaves out, and how it compares."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.speed import checks
from hybrid_search import connect
from hybrid_search.errors import DamagedIndexError


@pytest.mark.usefixtures("tiny_encoder")
def test_without_checks_damage_is_not_told(tmp_path: Path) -> None:
    documents = [{"id": f"{n}", "text": f"refund {n} please", "number": n} for n in range(9)]
    url = f"embedded:{tmp_path}"
    with connect(url) as client:
        client.ingest(documents)
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as connection, connection:
            connection.execute("UPDATE metadata SET value = 99 WHERE value = 7")
        with checks.skip_checks():
            assert not client.query("refund", where={"number": 7}).hits
    with connect(url) as client, pytest.raises(DamagedIndexError):
        client.query("refund", where={"number": 7})


def test_neighbouring_runs_are_compared_and_the_first_is_left_out() -> None:
    """After a first run of 9: 2, 1 (with, without), then 3, 4 the other way round; 2/1 and 4/3."""
    seconds = iter([9.0, 2.0, 1.0, 3.0, 4.0])
    assert checks.compare(lambda: next(seconds), 2) == {
        "CPU seconds": {"with": [2.0, 4.0], "without": [1.0, 3.0]},
        "times": 1.6667,
    }
