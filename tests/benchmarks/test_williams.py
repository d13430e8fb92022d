"""Williams' test of two correlations with the same gold, against a textbook's example."""

from __future__ import annotations

import math

import pytest

from benchmarks.quality.williams import compare, probability, statistic


def test_the_example_of_a_textbook() -> None:
    """Howell, "Statistical Methods for Psychology", 6th edition, p. 262: t = 1.36 with 23 degrees
    of freedom, p = .187.
    """
    t = statistic(26, 0.80, 0.72, 0.89)
    assert t == pytest.approx(1.361, abs=5e-4)
    assert probability(t, 23) == pytest.approx(0.187, abs=5e-4)


def test_an_example_worked_out() -> None:
    # |R| = 1 - .16 - .25 - .01 + 2 * .4 * .5 * .1 = .62; 2 * 102 / 100 * .62 = 1.2648; .45^2 * .9^3
    # = .14762; 102 * 1.1 = 112.2
    assert statistic(103, 0.4, 0.5, 0.1) == pytest.approx(
        -0.1 * math.sqrt(112.2 / (1.2648 + 0.147622)), abs=1e-4
    )


def test_turned_round_it_has_the_other_sign() -> None:
    assert statistic(50, 0.7, 0.6, 0.8) == pytest.approx(-statistic(50, 0.6, 0.7, 0.8))


def test_the_same_measure_twice_does_not_differ() -> None:
    compared = compare([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [2, 1, 4, 3, 5])
    assert compared["difference"] == compared["t"] == 0
    assert compared["p"] == pytest.approx(1.0)


def test_a_measure_that_follows_gold_is_told_from_one_that_does_not() -> None:
    gold = [math.sin(number) for number in range(200)]
    related = [value + 0.2 * math.sin(7 * number) for number, value in enumerate(gold)]
    unrelated = [value + 2.0 * math.sin(5 * number) for number, value in enumerate(gold)]
    compared = compare(gold, related, unrelated)
    assert compared["first"] > compared["second"]
    assert compared["p"] < 0.001


def test_three_rows_are_too_few() -> None:
    with pytest.raises(ValueError, match="3 rows are too few"):
        compare([1, 2, 3], [1, 2, 3], [3, 2, 1])
