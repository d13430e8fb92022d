"""Correlations, the area under the ROC curve, intervals and tests, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.quality import bootstrap
from benchmarks.quality.bootstrap import difference, interval, summary
from benchmarks.quality.correlation import auc, pearson, ranks, spearman
from benchmarks.quality.williams import compare, probability, statistic

NUMBERS = st.lists(st.integers(min_value=-5, max_value=5), min_size=2, max_size=30)


def test_pearson_of_four_points() -> None:
    # means 2.5 and 2; deviations -1.5 -.5 .5 1.5 and -1 -1 1 1: products 1.5 + .5 + .5 + 1.5 = 4;
    # squares 5 and 4
    assert pearson([1, 2, 3, 4], [1, 1, 3, 3]) == pytest.approx(4 / math.sqrt(5 * 4))


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    # 1 is first; the two 3 are second and third, the three 5 fourth to sixth
    assert ranks([5, 3, 5, 1, 3, 5]).tolist() == [5, 2.5, 5, 1, 2.5, 5]


def test_spearman_sees_only_the_order() -> None:
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1.0)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)


def test_a_constant_list_correlates_with_nothing() -> None:
    assert math.isnan(pearson([1, 1, 1], [1, 2, 3]))


def test_without_one_of_both_kinds_there_is_no_auc() -> None:
    assert math.isnan(auc([0.1, 0.2], [1, 1]))


@settings(deadline=None, max_examples=100)
@given(NUMBERS, st.data())
def test_auc_agrees_with_counting_every_pair(scores: list[int], data: st.DataObject) -> None:
    labels = data.draw(
        st.lists(st.sampled_from([0, 1]), min_size=len(scores), max_size=len(scores))
    )
    pairs = [
        (a, b)
        for a, label in zip(scores, labels, strict=True)
        if label
        for b, other_label in zip(scores, labels, strict=True)
        if not other_label
    ]
    if pairs:
        pairs_in_order = sum((a > b) + 0.5 * (a == b) for a, b in pairs)
        assert auc(scores, labels) == pytest.approx(pairs_in_order / len(pairs))


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
