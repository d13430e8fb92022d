"""Pearson, Spearman and the area under the ROC curve, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.quality.correlation import auc, pearson, ranks, spearman

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
