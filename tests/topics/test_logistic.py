"""The fit of probabilities, against scikit-learn's, and its error against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from hybrid_search.errors import UsageError
from hybrid_search.topics.logistic import bin_probabilities, calibration_error, fit_logistic


def draw(number: int, midpoint: float, slope: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    scores = generator.uniform(0.2, 1.4, number)
    probabilities = 1 / (1 + np.exp(-slope * (scores - midpoint)))
    return scores, generator.random(number) < probabilities


def test_the_fit_is_that_of_scikit_learn() -> None:
    scores, labels = draw(5_000, 0.9, 6.0)
    calibration = fit_logistic(scores, labels)
    other = LogisticRegression(C=1e9).fit(scores[:, None], labels)
    assert calibration.slope == pytest.approx(other.coef_[0, 0], rel=0.01)
    assert calibration.midpoint == pytest.approx(-other.intercept_[0] / other.coef_[0, 0], abs=0.01)


def test_a_weight_of_two_counts_as_two_labels() -> None:
    scores, labels = draw(200, 0.8, 9.0)
    weights = np.where(np.arange(200) < 50, 2.0, 1.0)
    weighted = fit_logistic(scores, labels, weights)
    repeated = fit_logistic(
        np.concatenate([scores, scores[:50]]), np.concatenate([labels, labels[:50]])
    )
    assert weighted.midpoint == pytest.approx(repeated.midpoint, abs=1e-6)
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-6)


def test_labels_that_a_limit_separates_give_a_finite_slope() -> None:
    calibration = fit_logistic(np.array([0.2, 0.3, 0.9, 1.0]), np.array([False, False, True, True]))
    assert 0.3 < calibration.midpoint < 0.9
    assert 1 < calibration.slope < 1000


def test_equal_scores_are_no_fault() -> None:
    calibration = fit_logistic(np.full(4, 0.5), np.array([True, False, True, False]))
    assert calibration.span(np.array([0.5]))[0] == pytest.approx(0.5, abs=1e-3)


def test_labels_of_one_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="2 spans are judged to be mentions and 0 not to be"):
        fit_logistic(np.array([0.2, 0.3]), np.array([True, True]))


def test_the_reliability_plot_has_a_row_for_each_bin_with_labels() -> None:
    probabilities = np.array([0.01, 0.05, 0.42, 0.49, 1.0])
    labels = np.array([False, True, True, True, True])
    assert bin_probabilities(probabilities, labels) == [
        (2, pytest.approx(0.03), 0.5),
        (2, pytest.approx(0.455), 1.0),
        (1, 1.0, 1.0),
    ]


def test_the_calibration_error_is_the_weighted_difference() -> None:
    """Bin .1-.2: mean .15, share .5, so .35 of 2 labels; bin .9-1: .95 against 1 of 2 labels.

    (2 * .35 + 2 * .05) / 4 = .2.
    """
    probabilities = np.array([0.15, 0.15, 0.95, 0.95])
    labels = np.array([True, False, True, True])
    assert calibration_error(probabilities, labels) == pytest.approx(0.2)
