"""The bootstrapped interval of a mean."""

from __future__ import annotations

import pytest

from benchmarks.quality import bootstrap
from benchmarks.quality.bootstrap import difference, interval, summary


def test_equal_values_leave_no_doubt() -> None:
    assert interval([0.25] * 5) == (0.25, 0.25)


def test_the_interval_of_a_coin_s_share() -> None:
    # 100 throws, half heads: a standard error of .05, so about .5 - .098 to .5 + .098
    assert interval([0.0, 1.0] * 50) == pytest.approx((0.402, 0.598), abs=0.012)


def test_the_same_values_give_the_same_interval() -> None:
    assert interval([0.1, 0.4, 0.9]) == interval([0.1, 0.4, 0.9])


def test_values_drawn_a_few_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [0.1, 0.4, 0.9]
    expected = interval(values)
    monkeypatch.setattr(bootstrap, "MAX_DRAWS", 100)
    assert interval(values) == expected


def test_a_difference_is_paired() -> None:
    """Values that lie far apart, and one always .1 above the other: no doubt about that."""
    assert difference([0.1, 0.5, 1.0], [0.0, 0.4, 0.9]) == {"mean": 0.1, "interval": [0.1, 0.1]}
    assert summary([0.1, 0.5, 1.0])["interval"] != [0.5333, 0.5333]
