"""compat="opensearch": the server's arithmetic written out, and its general properties.

One answer of a real server is reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.server.hybrid_techniques import (
    COMBINATIONS_BY_NORMALIZATION,
    leg_weights,
)
from hybrid_search.errors import UsageError
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.opensearch import fuse, fuse_by_alpha, score_from_cosine, technique_of
from hybrid_search.search.opensearch.arithmetic import NORMALIZATIONS
from hybrid_search.search.opensearch.base import FLOOR, Single
from hybrid_search.search.opensearch.means import arithmetic, geometric, harmonic, weighted_sum

Leg = list[tuple[str, float]]
Case = tuple[str, list[float], list[float]]

NORMALIZED: list[Case] = [
    (
        "min_max",
        [7.0, 5.0, 3.0],
        [4 / 4, 2 / 4, 0.001],
    ),  # (3 - 3) / (7 - 3) = 0, which becomes 0.001
    ("min_max", [9.0], [1.0]),  # a lone hit
    ("min_max", [0.2, 0.2, 0.2], [1.0, 1.0, 1.0]),  # equal ones
    ("min_max", [0.9, 0.8], [1.0, 0.001]),
    ("min_max", [], []),
    ("l2", [4.0, 3.0], [4 / 5, 3 / 5]),  # sqrt(16 + 9) = 5
    ("l2", [9.0], [1.0]),
    ("l2", [0.0, 0.0], [0.0, 0.0]),  # no length
    ("l2", [], []),
    # mean 4, deviation sqrt((2^2 + 0 + 2^2) / (3 - 1)) = 2; the middle one is the mean: the highest
    # raw score
    ("z_score", [6.0, 4.0, 2.0], [2 / 2, 6.0, 0.001]),
    # mean 3, deviation sqrt((9 + 1 + 1 + 1) / 3) = 2: what is under the mean is 0.001, whatever its
    # order
    ("z_score", [6.0, 2.0, 2.0, 2.0], [3 / 2, 0.001, 0.001, 0.001]),
    (
        "z_score",
        [8.0, 7.0, 2.0],
        [7 / math.sqrt(93), 4 / math.sqrt(93), 0.001],
    ),  # mean 17/3, variance (49 + 16 + 121) / 9 / 2 = 31/3
    ("z_score", [9.0], [9.0]),  # a lone hit is its own mean: its raw score
    ("z_score", [0.25, 0.25], [0.25, 0.25]),  # so are equal ones
    ("z_score", [], []),
    (
        "rrf",
        [9.0, 2.0, 2.0],
        [0.0163934426, 0.0161290323, 0.0158730159],
    ),  # 1/61, 1/62, 1/63 to ten digits; equal scores have ranks, too
    ("rrf", [], []),
]


@pytest.mark.parametrize(("name", "scores", "expected"), NORMALIZED)
def test_a_leg_is_normalized_as_the_formula_says(
    name: str, scores: list[float], expected: list[float]
) -> None:
    assert NORMALIZATIONS[name]([Single(score) for score in scores]) == pytest.approx(
        expected, rel=2e-7
    )


def test_a_deviation_of_nothing_counts_the_lowest_raw_score() -> None:
    """Only the two smallest numbers of single precision come so close.

    The deviation, 1.4e-45 / sqrt 5, is rounded to 0, the mean to the lower number.
    """
    higher, lower = Single(2.8e-45), Single(1.4e-45)
    assert NORMALIZATIONS["z_score"]([higher, lower, lower, lower, lower]) == [
        lower,
        higher,
        higher,
        higher,
        higher,
    ]


COMBINED: list[tuple[Callable[..., Single], list[float], list[float], float]] = [
    (arithmetic, [0.8, 0.4], [0.5, 0.5], (0.8 * 0.5 + 0.4 * 0.5) / 1),
    (arithmetic, [0.8, 0.0], [0.3, 0.7], 0.8 * 0.3 / 1),  # the weight of the leg without it stays
    (arithmetic, [0.001, 0.0], [0.5, 0.5], 0.0005),  # the documentation's 5.0E-4
    (arithmetic, [0.8, 0.4], [0.0, 0.0], 0.0),
    (arithmetic, [0.9, 0.6, 0.3], [1.0, 1.0, 1.0], 1.8 / 3),
    (geometric, [0.9, 0.4], [0.5, 0.5], math.sqrt(0.9 * 0.4)),
    (geometric, [0.9, 0.4], [0.25, 0.75], 0.9**0.25 * 0.4**0.75),
    (geometric, [0.8, 0.0], [0.3, 0.7], 0.8),  # left out, weight and all
    (geometric, [0.8, 0.0], [0.0, 1.0], 0.0),  # nothing is left
    (harmonic, [0.8, 0.4], [0.5, 0.5], 1 / (0.5 / 0.8 + 0.5 / 0.4)),
    (harmonic, [0.8, 0.4], [0.25, 0.75], 1 / (0.25 / 0.8 + 0.75 / 0.4)),
    (harmonic, [0.8, 0.0], [0.3, 0.7], 0.8),
    (harmonic, [0.8, 0.0], [0.0, 1.0], 0.0),
    (
        weighted_sum,
        [0.0163934426, 0.0161290323],
        [0.5, 0.5],
        0.0163934426 * 0.5 + 0.0161290323 * 0.5,
    ),
    (weighted_sum, [0.0163934426, 0.0], [0.5, 0.5], 0.0163934426 * 0.5),
    (
        weighted_sum,
        [0.0163934426, 0.0161290323],
        [1.0, 1.0],
        0.0325224749,
    ),  # unweighted: twice as much
]


@pytest.mark.parametrize(("combine", "scores", "weighted", "expected"), COMBINED)
def test_scores_are_combined_as_the_formula_says(
    combine: Callable[..., Single], scores: list[float], weighted: list[float], expected: float
) -> None:
    combined = combine([Single(score) for score in scores], [Single(weight) for weight in weighted])
    assert combined.dtype == np.float32
    assert combined == pytest.approx(expected, rel=3e-7)


BM25: Leg = [("a", 7.0), ("b", 5.0), ("c", 3.0)]
SPANS: Leg = [("b", 0.875), ("d", 0.8125), ("a", 0.75)]

FUSED: list[tuple[str, float, Leg]] = [
    # BM25: a 1, b 0.5, c 0.001; spans: b 1, d 0.5, a 0.001
    (
        "min_max",
        0.5,
        [("b", (0.5 + 1) / 2), ("a", (1 + 0.001) / 2), ("d", 0.5 / 2), ("c", 0.001 / 2)],
    ),
    (
        "calibrated",
        0.5,
        [("b", (0.5 + 1) / 2), ("a", (1 + 0.001) / 2), ("d", 0.5 / 2), ("c", 0.001 / 2)],
    ),
    (
        "min_max",
        0.25,
        [
            ("a", 0.75 + 0.25 * 0.001),
            ("b", 0.75 * 0.5 + 0.25),
            ("d", 0.25 * 0.5),
            ("c", 0.75 * 0.001),
        ],
    ),
    (
        "min_max",
        0.0,
        [("a", 1.0), ("b", 0.5), ("c", 0.001), ("d", 0.0)],
    ),  # what only the other leg found is there, with 0
    ("min_max", 1.0, [("b", 1.0), ("d", 0.5), ("a", 0.001), ("c", 0.0)]),
    # sqrt(49 + 25 + 9) = sqrt(83); in sixteenths: sqrt(14^2 + 13^2 + 12^2) = sqrt(509)
    (
        "l2",
        0.5,
        [
            ("a", (7 / math.sqrt(83) + 12 / math.sqrt(509)) / 2),
            ("b", (5 / math.sqrt(83) + 14 / math.sqrt(509)) / 2),
            ("d", 13 / math.sqrt(509) / 2),
            ("c", 3 / math.sqrt(83) / 2),
        ],
    ),
    # ranks a 1, b 2, c 3; b 1, d 2, a 3
    (
        "rrf",
        0.5,
        [
            ("b", (1 / 62 + 1 / 61) / 2),
            ("a", (1 / 61 + 1 / 63) / 2),
            ("d", 1 / 62 / 2),
            ("c", 1 / 63 / 2),
        ],
    ),
    (
        "rrf",
        0.75,
        [
            ("b", 0.25 / 62 + 0.75 / 61),
            ("a", 0.25 / 61 + 0.75 / 63),
            ("d", 0.75 / 62),
            ("c", 0.25 / 63),
        ],
    ),
]


@pytest.mark.parametrize(("fusion", "alpha", "expected"), FUSED)
def test_two_legs_are_fused_as_written_out(fusion: str, alpha: float, expected: Leg) -> None:
    ranking = fuse_by_alpha(BM25, SPANS, alpha, fusion)
    assert [key for key, _ in ranking] == [key for key, _ in expected]
    assert [score for _, score in ranking] == pytest.approx(
        [score for _, score in expected], rel=3e-7, abs=1e-12
    )


RACCOONS: list[Leg] = [
    [("4", 0.874715), ("2", 0.45060888)],
    [
        ("1", 0.67567575),
        ("2", 0.0044867187),
        ("3", 0.000034285466),
        ("4", 3.3426852e-7),
        ("5", 3.3342673e-9),
    ],
    [("1", 1.1546944)],
]
"""The answers of three sub-queries of a hybrid query on an OpenSearch 3.

From zenn.dev/opensearch, 26 November 2025, which has raw scores beside the fused.
"""


def test_the_answer_of_a_real_server_is_reproduced_to_the_last_digit_and_tie() -> None:
    """The arithmetic by document.

    1: (0 + 1.7888 + its raw 1.1547, being a lone hit) / 3; 4: (1 / sqrt 2 + 0.001) / 3;
    2: (0.001 + 0.001) / 3; 3 and 5: 0.001 / 3.

    Each document has three nested ones before it, so its number in Lucene is 3, 7, 11, 15, 19;
    19 is in the bucket of 3, before that of 11.
    """
    ranking = fuse(
        RACCOONS, [1.0, 1.0, 1.0], "z_score", numbers={"1": 3, "2": 7, "3": 11, "4": 15, "5": 19}
    )
    assert ranking == [
        ("1", 0.98117065),
        ("4", 0.2360356),
        ("2", 0.0006666667),
        ("5", 0.00033333336),
        ("3", 0.00033333336),
    ]


def test_asked_to_explain_the_server_normalizes_twice() -> None:
    """The same page has the score of document 1 with explain, for the last two sub-queries.

    It is 4 / sqrt 5 of the outlier 1.7888 among 0.001s.
    """
    assert fuse(RACCOONS[1:], [1.0, 1.0], "z_score", explain=True)[0] == ("1", 1.4717745)
    assert fuse(RACCOONS[1:], [1.0, 1.0], "z_score")[0] == ("1", 1.471756)


def test_the_worst_of_a_leg_is_normalized_to_itself_by_an_explained_min_max() -> None:
    """5 of 3..7 is 0.5, and (0.5 - 0.001) / (1 - 0.001) the second time."""
    assert fuse([BM25], [1.0], explain=True) == [
        ("a", 1.0),
        ("b", pytest.approx(0.499 / 0.999)),
        ("c", 0.001),
    ]


def test_each_leg_is_cut_to_the_window_before_anything_is_computed() -> None:
    """The last of each cut leg (b of a and b, d of b and d) is now its worst."""
    assert fuse_by_alpha(BM25, SPANS, 0.5, "min_max", window=2) == [
        ("b", pytest.approx((0.001 + 1) / 2)),
        ("a", 0.5),
        ("d", 0.0005),
    ]


def test_what_a_leg_scores_0_it_has_not_found() -> None:
    """Else the worst of BM25 would be 0 and c better than it."""
    assert fuse_by_alpha([*BM25, ("z", 0.0)], SPANS, 0.5, "min_max") == fuse_by_alpha(
        BM25, SPANS, 0.5, "min_max"
    )


def test_ties_keep_the_order_of_the_legs_where_no_document_numbers_are_known() -> None:
    """Ranks 1 and 1, 2 and 2: with equal weights each pair is a tie."""
    assert [
        key
        for key, _ in fuse_by_alpha([("x", 2.0), ("y", 1.0)], [("p", 0.9), ("q", 0.8)], 0.5, "rrf")
    ] == ["x", "p", "y", "q"]


@pytest.mark.parametrize(
    ("documents", "order"),
    [
        ([5, 3, 4], [3, 4, 5]),  # in a table of 16
        ([17, 2, 1], [1, 17, 2]),  # 17 is in the bucket of 1, and came before it: the last is first
        ([1, 17, 2], [17, 1, 2]),
        ([65536, 2, 0], [0, 65536, 2]),  # Java folds the upper half in: 65536 ^ 1
        (
            list(range(12, 24)),
            [16, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 15],
        ),  # twelve fit in 16 buckets
        (
            list(range(28, 41)),
            [32, 33, 34, 35, 36, 37, 38, 39, 40, 28, 29, 30, 31],
        ),  # the thirteenth makes them 32
    ],
)
def test_ties_come_in_the_order_of_a_hash_table_of_document_numbers(
    documents: list[int], order: list[int]
) -> None:
    leg = [(document, 1.0) for document in documents]
    assert [
        key for key, _ in fuse([leg], [1.0], numbers={document: document for document in documents})
    ] == order


@pytest.mark.parametrize("fusion", FUSIONS)
def test_empty_legs_give_nothing_and_an_empty_one_leaves_the_other_its_order(fusion: str) -> None:
    assert fuse_by_alpha([], [], 0.5, fusion) == []
    only = fuse_by_alpha(BM25, [], 0.5, fusion)
    assert {key for key, _ in only} == {"a", "b", "c"}
    if fusion != "z_score":  # which gives the middle one its leg's raw maximum
        assert [key for key, _ in only] == ["a", "b", "c"]


def test_geometric_and_harmonic_do_not_put_a_passage_of_one_leg_behind() -> None:
    """d is in one leg, 0.5: the arithmetic mean halves it, the others do not."""
    for combination, first in (
        ("arithmetic_mean", "b"),
        ("geometric_mean", "b"),
        ("harmonic_mean", "b"),
    ):
        scores = dict(fuse([BM25, SPANS], [0.5, 0.5], "min_max", combination))
        assert max(scores, key=lambda key: scores[key]) == first
        assert scores["d"] == pytest.approx(0.25 if combination == "arithmetic_mean" else 0.5)


def test_the_weights_are_never_integers_and_end_where_alpha_does() -> None:
    assert leg_weights(0.7) == (0.3, 0.7)
    assert [type(weight) for alpha in (0, 1) for weight in leg_weights(alpha)] == [float] * 4
    assert leg_weights(1) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("cosine", "score"), [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0), (0.5, 0.75), (-1.0000001, 0.0)]
)
def test_a_cosine_is_scored_as_cosinesimil_does(cosine: float, score: float) -> None:
    assert score_from_cosine(cosine) == score


def test_every_fusion_of_ours_has_a_technique_and_the_one_it_lacks_is_its_default() -> None:
    assert {fusion: technique_of(fusion) for fusion in FUSIONS} == {
        "calibrated": "min_max",
        "min_max": "min_max",
        "l2": "l2",
        "z_score": "z_score",
        "rrf": "rrf",
    }
    with pytest.raises(UsageError, match=r"'borda'.*min_max, l2, z_score, rrf"):
        fuse_by_alpha(BM25, SPANS, 0.5, "borda")


@pytest.mark.parametrize(
    ("technique", "combination"),
    [
        ("z_score", "geometric_mean"),
        ("z_score", "harmonic_mean"),
        ("rrf", "arithmetic_mean"),
        ("min_max", "rrf"),
    ],
)
def test_what_the_server_does_not_combine_is_an_error(technique: str, combination: str) -> None:
    allowed = COMBINATIONS_BY_NORMALIZATION[technique][0]
    with pytest.raises(
        UsageError,
        match=f"does not combine {technique} by {combination}: use {allowed}",
    ):
        fuse([BM25], [1.0], technique, combination)


def test_reciprocal_ranks_are_those_of_decimal_arithmetic() -> None:
    """BigDecimal.ONE.divide(rank, 10, HALF_UP) for every rank that a server may return."""
    expected = [
        float((Decimal(1) / (60 + rank)).quantize(Decimal("1e-10"), ROUND_HALF_UP))
        for rank in range(1, 10_001)
    ]
    assert NORMALIZATIONS["rrf"]([Single(1.0)] * 10_000) == [Single(value) for value in expected]


scores = st.floats(min_value=0.0009765625, max_value=50.0, width=32)
leg = st.dictionaries(st.sampled_from("abcdefghijkl"), scores, max_size=8).map(
    lambda scores_by_key: sorted(scores_by_key.items(), key=lambda item: (-item[1], item[0]))
)
alphas = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
PAIRS = [
    (technique, combination)
    for technique, combinations in COMBINATIONS_BY_NORMALIZATION.items()
    for combination in combinations
]


@settings(deadline=None, max_examples=60)
@given(lexical=leg, semantic=leg, alpha=alphas, pair=st.sampled_from(PAIRS))
def test_every_passage_of_either_leg_is_there_once_best_first_and_in_range(
    lexical: Leg, semantic: Leg, alpha: float, pair: tuple[str, str]
) -> None:
    ranking = fuse([lexical, semantic], leg_weights(alpha), *pair)
    assert sorted(key for key, _ in ranking) == sorted({*dict(lexical), *dict(semantic)})
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    top = {"min_max": 1, "l2": 1, "z_score": 50, "rrf": 1 / 61}[
        pair[0]
    ]  # z_score: a lone hit counts its raw score
    assert all(0 <= score <= top * 1.000001 for _, score in ranking)


@settings(deadline=None, max_examples=60)
@given(
    lexical=leg,
    semantic=leg,
    alpha=alphas,
    pair=st.sampled_from([pair for pair in PAIRS if pair[0] in ("min_max", "l2")]),
    data=st.data(),
)
def test_scores_do_not_hang_on_the_order_of_the_input(
    lexical: Leg, semantic: Leg, alpha: float, pair: tuple[str, str], data: st.DataObject
) -> None:
    shuffled = [data.draw(st.permutations(leg_scores)) for leg_scores in (lexical, semantic)]
    close = 1e-6 if pair[0] == "l2" else 0  # a sum of single precision rounds by its order
    assert dict(fuse(shuffled, leg_weights(alpha), *pair)) == pytest.approx(
        dict(fuse([lexical, semantic], leg_weights(alpha), *pair)), rel=close
    )


@settings(deadline=None, max_examples=60)
@given(ranking=leg, name=st.sampled_from(["min_max", "l2", "rrf"]))
def test_a_normalized_leg_keeps_its_order_but_under_the_floor(ranking: Leg, name: str) -> None:
    """z_score does not: it lifts the one equal to the mean, and levels all under it."""
    normalized = [
        score
        for score in NORMALIZATIONS[name]([Single(score) for _, score in ranking])
        if name != "min_max" or score > FLOOR
    ]
    assert normalized == sorted(normalized, reverse=True)


def test_the_floor_puts_the_worst_before_one_that_was_a_hair_better() -> None:
    """(1.03125 - 1) / (33 - 1) = 1/1024, which is under 0.001. It is so on the server."""
    assert fuse([[("a", 33.0), ("b", 1.03125), ("c", 1.0)]], [1.0]) == [
        ("a", 1.0),
        ("c", 0.001),
        ("b", 1 / 1024),
    ]


@settings(deadline=None, max_examples=60)
@given(
    lexical=leg, semantic=leg, factor=st.sampled_from([0.5, 2.0, 4.0]), pair=st.sampled_from(PAIRS)
)
def test_the_scale_of_a_leg_does_not_matter_but_for_the_oddities_of_z_score(
    lexical: Leg, semantic: Leg, factor: float, pair: tuple[str, str]
) -> None:
    """Spans may be scored (1 + cosine) / 2, or 1 + cosine as an inner product is.

    A factor that is a power of two changes no rounding.
    """
    scaled = [(key, score * factor) for key, score in semantic]
    if pair[0] != "z_score":
        assert fuse([lexical, scaled], [0.5, 0.5], *pair) == fuse(
            [lexical, semantic], [0.5, 0.5], *pair
        )
