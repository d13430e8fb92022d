"""Each fusion's arithmetic written out, and what holds of them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import rank_scores
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.query import FUSION_NAMES
from hybrid_search.search.types import Legs

PLAIN = Calibration(midpoint=0.5, slope=10.0, saturation=1.0)


def legs(
    bm25: Sequence[float],
    cosine: Sequence[float],
    terms: int = 1,
    window: int = 100,
    calibration: Calibration = PLAIN,
) -> Legs:
    """Both legs as a query makes them: ranks by score, none where no term matches or beyond the
    window.
    """
    scores = np.array(bm25, dtype=np.float64), np.array(cosine, dtype=np.float64)
    ids = [("", number) for number in range(len(bm25))]
    first, second = (rank_scores(leg_scores, ids, window) for leg_scores in scores)
    first[scores[0] <= 0] = 0
    return Legs(*scores, first, second, terms, calibration)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


Case = tuple[str, float, list[float], list[float], list[float]]

CASES: list[Case] = [
    # calibrated: bm25 / (bm25 + 1 * terms), and 1 / (1 + e^(-10 * (cosine - 0.5))); one term
    ("calibrated", 0.0, [3.0, 1.0, 0.0], [0.9, 0.5, 0.1], [3 / 4, 1 / 2, 0 / 1]),
    ("calibrated", 1.0, [3.0, 1.0, 0.0], [0.9, 0.5, 0.1], [sigmoid(4), 0.5, sigmoid(-4)]),
    ("calibrated", 0.2, [3.0, 1.0], [0.5, 0.5], [0.8 * 3 / 4 + 0.2 * 0.5, 0.8 * 1 / 2 + 0.2 * 0.5]),
    # min_max: BM25 from 0 to 4, cosine from 0.2 to 0.6; equal ones above 0 count 1, zeros nothing
    ("min_max", 0.0, [4.0, 1.0, 0.0], [0.6, 0.2, 0.3], [4 / 4, 1 / 4, 0 / 4]),
    ("min_max", 1.0, [4.0, 1.0, 0.0], [0.6, 0.2, 0.3], [0.4 / 0.4, 0 / 0.4, 0.1 / 0.4]),
    ("min_max", 0.25, [2.0, 2.0], [-0.1, 0.1], [0.75 * 1 + 0.25 * 0, 0.75 * 1 + 0.25 * 1]),
    ("min_max", 0.25, [0.0, 0.0], [-0.1, 0.1], [0.75 * 0 + 0.25 * 0, 0.75 * 0 + 0.25 * 1]),
    # l2: |(3, 4)| = 5, |(0.6, -0.8)| = 1
    ("l2", 0.0, [3.0, 4.0], [0.6, -0.8], [3 / 5, 4 / 5]),
    ("l2", 1.0, [3.0, 4.0], [0.6, -0.8], [0.6 / 1, -0.8 / 1]),
    ("l2", 0.5, [3.0, 4.0], [0.6, -0.8], [(0.6 + 0.6) / 2, (0.8 - 0.8) / 2]),
    ("l2", 0.5, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    # z_score: (2, 4, 6) has mean 4 and deviation sqrt((4 + 0 + 4) / 2) = 2; (0.1, 0.3, 0.2) mean
    # 0.2 and sqrt((0.01 + 0.01) / 2) = 0.1
    ("z_score", 0.0, [2.0, 4.0, 6.0], [0.1, 0.3, 0.2], [-2 / 2, 0.0, 2 / 2]),
    ("z_score", 1.0, [2.0, 4.0, 6.0], [0.1, 0.3, 0.2], [-0.1 / 0.1, 0.1 / 0.1, 0.0]),
    ("z_score", 0.5, [2.0, 4.0, 6.0], [0.1, 0.3, 0.2], [(-1 - 1) / 2, (0 + 1) / 2, (1 + 0) / 2]),
    # no deviation, though 0.1 + 0.1 + 0.1 is not 3 * 0.1
    ("z_score", 0.5, [0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.0, 0.0, 0.0]),
    # a lone passage: 1 / (1 + 1) and 1 / (1 + e^0); alone above 0; its own length; no deviation
    ("calibrated", 0.5, [1.0], [0.5], [0.5]),
    ("min_max", 0.5, [1.0], [0.5], [1.0]),
    ("l2", 0.5, [1.0], [0.5], [1.0]),
    ("z_score", 0.5, [1.0], [0.5], [0.0]),
    ("rrf", 0.5, [1.0], [0.5], [1 / 61]),
    # rrf: 1 / (60 + rank); no term matches the third, which has no BM25 rank
    ("rrf", 0.0, [5.0, 7.0, 0.0], [0.1, 0.2, 0.3], [1 / 62, 1 / 61, 0.0]),
    ("rrf", 1.0, [5.0, 7.0, 0.0], [0.1, 0.2, 0.3], [1 / 63, 1 / 62, 1 / 61]),
]


@pytest.mark.parametrize(("name", "alpha", "bm25", "cosine", "expected"), CASES)
def test_the_arithmetic_is_this(
    name: str, alpha: float, bm25: list[float], cosine: list[float], expected: list[float]
) -> None:
    assert FUSIONS[name](legs(bm25, cosine), alpha).tolist() == pytest.approx(expected, abs=1e-12)


def test_every_fusion_has_cases() -> None:
    assert {case[0] for case in CASES} == set(FUSIONS)
    assert tuple(FUSIONS) == FUSION_NAMES


def test_calibrated_expects_more_bm25_of_more_terms() -> None:
    # 6 / (6 + 2 * 1) for one term, 6 / (6 + 2 * 3) for three; a phrase without a term counts as one
    doubled = Calibration(saturation=2.0)
    scores = [
        float(FUSIONS["calibrated"](legs([6.0], [0.0], terms, calibration=doubled), 0.0)[0])
        for terms in (1, 3, 0)
    ]
    assert scores == pytest.approx([6 / 8, 6 / 12, 6 / 8])


def test_rrf_gives_nothing_for_a_leg_beyond_its_window() -> None:
    # a window of 1: only the first of each leg has a rank
    scores = FUSIONS["rrf"](legs([9.0, 8.0], [0.1, 0.2], window=1), 0.5)
    assert scores.tolist() == pytest.approx([0.5 / 61, 0.5 / 61])


BM25 = st.one_of(st.just(0.0), st.floats(min_value=1e-6, max_value=200.0))
COSINE = st.floats(min_value=-1.0, max_value=1.0, width=32)
PAIRS = st.lists(st.tuples(BM25, COSINE), max_size=30)
ALPHA = st.floats(min_value=0.0, max_value=1.0)
NAMES = st.sampled_from(sorted(FUSIONS))
TERMS = st.integers(min_value=0, max_value=12)

bounded = settings(deadline=None, max_examples=100)


def legs_from_pairs(pairs: Sequence[tuple[float, float]], terms: int = 1) -> Legs:
    return legs([bm25 for bm25, _ in pairs], [cosine for _, cosine in pairs], terms)


def is_non_decreasing(scores: Sequence[float], along: Sequence[float]) -> bool:
    """Return whether `scores` keep the order of `along`, equal ones by rounding in either."""
    in_order = [score for _, score in sorted(zip(along, scores, strict=True))]
    return all(later >= earlier - 1e-12 for earlier, later in pairwise(in_order))


@bounded
@given(NAMES, PAIRS, ALPHA, TERMS)
def test_every_passage_gets_one_finite_score(
    name: str, pairs: list[tuple[float, float]], alpha: float, terms: int
) -> None:
    scores = FUSIONS[name](legs_from_pairs(pairs, terms), alpha)
    assert scores.shape == (len(pairs),)
    assert np.isfinite(scores).all()


@bounded
@given(NAMES, PAIRS)
def test_the_ends_of_alpha_keep_each_legs_own_order(
    name: str, pairs: list[tuple[float, float]]
) -> None:
    pair_legs = legs_from_pairs(pairs)
    assert is_non_decreasing(FUSIONS[name](pair_legs, 0.0).tolist(), pair_legs.bm25.tolist())
    assert is_non_decreasing(FUSIONS[name](pair_legs, 1.0).tolist(), pair_legs.span.tolist())


@bounded
@given(
    NAMES,
    st.lists(
        st.tuples(BM25, COSINE), unique_by=(lambda pair: pair[0], lambda pair: pair[1]), max_size=15
    ),
    ALPHA,
    st.randoms(),
)
def test_the_order_of_the_list_does_not_matter(
    name: str, pairs: list[tuple[float, float]], alpha: float, chance: Random
) -> None:
    order = list(range(len(pairs)))
    chance.shuffle(order)
    straight = FUSIONS[name](legs_from_pairs(pairs), alpha)
    shuffled = FUSIONS[name](legs_from_pairs([pairs[number] for number in order]), alpha)
    assert shuffled.tolist() == pytest.approx(straight[order].tolist(), abs=1e-9)


@bounded
@given(PAIRS, PAIRS, ALPHA, TERMS)
def test_a_calibrated_score_does_not_depend_on_the_others(
    pairs: list[tuple[float, float]],
    other_pairs: list[tuple[float, float]],
    alpha: float,
    terms: int,
) -> None:
    alone = [
        float(FUSIONS["calibrated"](legs_from_pairs([pair], terms), alpha)[0]) for pair in pairs
    ]
    assert (
        FUSIONS["calibrated"](legs_from_pairs([*pairs, *other_pairs], terms), alpha)[
            : len(pairs)
        ].tolist()
        == alone
    )


@bounded
@given(NAMES, PAIRS, ALPHA)
def test_more_of_both_legs_is_never_worth_less(
    name: str, pairs: list[tuple[float, float]], alpha: float
) -> None:
    scores = FUSIONS[name](legs_from_pairs(pairs), alpha).tolist()
    for first, score in zip(pairs, scores, strict=True):
        worse = [
            other_score
            for (bm25, cosine), other_score in zip(pairs, scores, strict=True)
            if bm25 < first[0] and cosine < first[1]
        ]
        assert all(score >= worse_score - 1e-12 for worse_score in worse)
