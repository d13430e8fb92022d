"""Measures of a ranking: ten ranked items scored by hand, agreement with scikit-learn, means over
groups with their intervals.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from benchmarks.quality import measures

TEN = "abcdefghij"
GRADES = {"b": 3, "d": 1, "f": 0, "x": 2}  # x was not found, f was judged to be wrong


def evaluate_one(ranking: str, grades: dict[str, int]) -> dict[str, float]:
    return {name: value for name, (value,) in measures.evaluate([ranking], [grades]).items()}


def test_ten_items_by_hand() -> None:
    metrics = evaluate_one(TEN, GRADES)
    # a gain of 3 at rank 2 and of 1 at rank 4; ideally 3, 2, 1 at ranks 1, 2, 3
    gain = 3 / math.log2(3) + 1 / math.log2(5)
    ideal_gain = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert metrics["ndcg@10"] == pytest.approx(gain / ideal_gain)
    assert metrics["mrr@10"] == 1 / 2
    # two of the three that are right, at whatever grade
    assert metrics["recall@10"] == metrics["recall@100"] == pytest.approx(2 / 3)


def test_average_precision_and_r_precision_look_at_the_whole_ranking() -> None:
    names = (measures.MAP, measures.R_PRECISION)
    # right at ranks 2 and 4, and x is nowhere: (1/2 + 2/4) / 3; of the first 3 one is right
    metrics = measures.evaluate([TEN], [{"b": 1, "d": 1, "x": 1}], names)
    assert metrics == {"map": [pytest.approx(1 / 3)], "r-precision": [pytest.approx(1 / 3)]}
    # the only right one is the 200th
    numbers = [str(number) for number in range(1, 201)]
    assert measures.evaluate([numbers], [{"200": 1}], names)["map"] == [1 / 200]


def test_what_is_behind_the_tenth_is_in_recall_at_100_alone() -> None:
    assert evaluate_one("abcdefghijk", {"k": 1, "x": 1}) == {
        "ndcg@10": 0,
        "mrr@10": 0,
        "recall@10": 0,
        "recall@100": 0.5,
    }
    hundred = [str(number) for number in range(101)]
    assert measures.evaluate([hundred], [{"99": 1, "100": 1}])["recall@100"] == [0.5]


def test_what_is_repeated_counts_once_and_takes_up_one_rank() -> None:
    assert (
        evaluate_one("aaaaaaaaaaabb", {"b": 1})
        == evaluate_one("ab", {"b": 1})
        == {"ndcg@10": 1 / math.log2(3), "mrr@10": 0.5, "recall@10": 1, "recall@100": 1}
    )


def test_nothing_found_and_nothing_right() -> None:
    without_ranking = evaluate_one("", {"a": 1})
    without_grades = evaluate_one("ab", {})
    with_grade_zero = evaluate_one("ab", {"a": 0})
    for metrics in (without_ranking, without_grades, with_grade_zero):
        assert set(metrics.values()) == {0.0}


def test_values_are_in_the_order_of_the_rankings() -> None:
    # more than ten, whose numbers are not in the order of their letters
    rankings = ["ab"] * 5 + ["ba"] * 7
    assert measures.evaluate(rankings, [{"a": 1}] * 12)["mrr@10"] == [1.0] * 5 + [0.5] * 7


def test_without_grades_all_is_as_right() -> None:
    # b and d: gains at ranks 2 and 4; ideally at 1 and 2
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal_gain = 1 + 1 / math.log2(3)
    assert measures.ndcg(TEN, {"b", "d"}) == pytest.approx(gain / ideal_gain)
    assert measures.ndcg([("call", (1, 2)), ("call", (3,))], {("call", (3,))}) == pytest.approx(
        1 / math.log2(3)
    )


@pytest.mark.parametrize("seed", range(20))
def test_ndcg_is_scikit_learn_s(seed: int) -> None:
    grades = np.random.default_rng(seed).integers(0, 4, size=30)
    grades[0] = 1  # at least one is right
    metrics = evaluate_one(
        "".join(map(chr, range(30))),
        {chr(number): int(grade) for number, grade in enumerate(grades)},
    )
    assert metrics["ndcg@10"] == pytest.approx(
        ndcg_score([grades], [-np.arange(30)], k=10), abs=1e-6
    )


def test_groups_are_averaged_first() -> None:
    values, groups = [1.0, 0.0, 0.0, 0.5], ["a", "b", "b", "b"]
    assert measures.means_by_group(values, groups) == {"a": 1.0, "b": pytest.approx(0.5 / 3)}
    assert measures.grouped_mean(values, groups) == pytest.approx((1 + 0.5 / 3) / 2)


def test_a_row_and_a_difference_are_over_groups() -> None:
    """Two groups of equal means leave no doubt, however their wordings differ."""
    groups = ["a", "a", "b"]
    first = {"ndcg@10": [0.25, 0.75, 0.5], "mrr@10": [1.0, 1.0, 0.0]}
    second = {"ndcg@10": [0.5, 0.0, 0.25], "mrr@10": [1.0, 1.0, 1.0]}
    assert measures.row(first, groups) == {
        "ndcg@10": 0.5,
        "mrr@10": 0.5,
        "ndcg@10 interval": [0.5, 0.5],
    }
    assert measures.difference(first, second, groups) == {"mean": 0.25, "interval": [0.25, 0.25]}
