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


def test_both_ways_take_turns_and_every_other_time_the_other_one_is_first() -> None:
    ways: list[str] = []

    def run(way: str) -> float:
        ways.append(way)
        return float(len(ways))

    assert checks.in_turns(run, 0) == {"with": 1.0, "without": 2.0}
    assert checks.in_turns(run, 1) == {"without": 3.0, "with": 4.0}
    assert ways == ["with", "without", "without", "with"]


def test_the_median_of_the_ratios_counts() -> None:
    """The ratios are 1, 2, 3, 4 and 5; their quartiles lie on 2, 3 and 4."""
    rounds = [{"with": float(number), "without": 1.0} for number in (5, 1, 3, 2, 4)]
    assert checks.summarize(rounds) == {
        "CPU seconds": {"with": [5, 1, 3, 2, 4], "without": [1] * 5},
        "times": 3.0,
        "quartiles": [2.0, 4.0],
    }
