"""Covering windows: the policy, its windows written out, and the words that they cover."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.errors import UsageError
from hybrid_search.text import spans, word_codes
from hybrid_search.text.types import Bytes, PassageTokens
from hybrid_search.text.window_policy import (
    parse,
    part_ranges,
    window_bounds,
    window_vectors,
    windows,
)
from tests.helpers.random_codes import pack, pack_words

POLICIES = ["6/1", "6+12/2", "6/2", "20/4", "1", "3+7+20/3"]
sixty_examples = settings(deadline=None, max_examples=60)

parts = st.integers(1, 180).flatmap(
    lambda words: st.tuples(st.just(words), st.sampled_from([words, max(1, words - 19)]))
)
"""Words and core words of parts as `passages.split` makes them.

A piece that the next one continues has 19 words after its core.
"""


def list_windows(policy: str, words: int, core: int | None = None) -> list[list[int]]:
    rows: list[list[int]] = windows(words, words if core is None else core, policy).tolist()
    return rows


def make_counts(document: list[tuple[int, int]]) -> Bytes:
    return np.concatenate([spans.counts(words, core) for words, core in document])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("6+12/2", ((6, 12), 2)),
        ("12+6/2", ((6, 12), 2)),
        ("6/1", ((6,), 1)),
        ("20", ((20,), 1)),
        (" 1 + 2 / 3 ", ((1, 2), 3)),
    ],
)
def test_a_policy_is_lengths_and_strides_a_window(
    policy: str, expected: tuple[tuple[int, ...], int]
) -> None:
    assert parse(policy) == expected


@pytest.mark.parametrize(
    "policy",
    ["", "six", "6+/2", "6/2/2", "6/x", "/2", "6.5", "0", "-6", "21", "6+21/2", "6/0", "6/-1"],
)
def test_a_policy_that_says_nothing_is_refused_with_its_text(policy: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"span policy {policy!r}")):
        parse(policy)


def test_the_windows_of_ten_words() -> None:
    # 6 words every 3: 0-5, 3-8, and the last one, 4-9, where the part ends; 12 words do not fit, so
    # that all ten are one window
    assert list_windows("6+12/2", 10) == [[0, 5], [0, 9], [3, 8], [4, 9]]
    # 6 words every 6: 0-5, and 4-9 where the part ends
    assert list_windows("6/1", 10) == [[0, 5], [4, 9]]
    # 3 words every word, as 3 // 5 is 0
    assert list_windows("3/5", 5) == [[0, 2], [1, 3], [2, 4]]
    assert list_windows("6/2", 1) == [[0, 0]]


def test_the_windows_of_twelve_words_end_where_the_part_ends() -> None:
    assert list_windows("6+12/2", 12) == [[0, 5], [0, 11], [3, 8], [6, 11]]


def test_the_windows_of_a_piece_start_in_its_core() -> None:
    # 12 words, 8 of them core: 6 words every 3 start at 0, 3 and 6; the ten-word windows of every 5
    # at 0, and the last, at 2
    assert list_windows("6/2", 12, core=8) == [[0, 5], [3, 8], [6, 11]]
    assert list_windows("10/2", 12, core=8) == [[0, 9], [2, 11]]
    assert list_windows("6/2", 12, core=5) == [[0, 5], [3, 8]]


@sixty_examples
@given(parts, st.sampled_from(POLICIES))
def test_every_core_word_is_covered_and_no_window_leaves_the_part(
    part: tuple[int, int], policy: str
) -> None:
    words, core = part
    covering_windows = list_windows(policy, words, core)
    assert set(range(core)) <= {
        word for first, last in covering_windows for word in range(first, last + 1)
    }
    lengths = {min(length, words) for length in parse(policy)[0]}
    assert all(
        first < core and last < words and last - first + 1 in lengths
        for first, last in covering_windows
    )


@sixty_examples
@given(st.lists(parts, min_size=1, max_size=6))
def test_the_parts_of_a_passage_are_read_back_from_its_span_counts(
    document: list[tuple[int, int]],
) -> None:
    part_runs = part_ranges(make_counts(document))
    assert [(words, core) for _, words, core in part_runs] == document
    assert [first for first, _, _ in part_runs] == [
        sum(words for words, _ in document[:number]) for number in range(len(document))
    ]


def test_windows_of_fewer_numbers_are_unit_vectors_of_the_first_ones() -> None:
    random = np.random.default_rng(5)
    vectors = random.normal(size=(9, 16)).astype(np.float32)
    codes = pack_words(vectors, make_counts([(9, 9)]))
    whole, cut = window_vectors(codes, "3/1"), window_vectors(codes, "3/1", 6)
    assert cut.shape == (3, 6)
    assert np.linalg.norm(cut, axis=1) == pytest.approx(np.ones(3))
    expected = whole[:, :6] / np.linalg.norm(whole[:, :6], axis=1, keepdims=True)
    assert cut == pytest.approx(expected, abs=1e-6)
    assert spans.scale_to_unit(whole[0][:6]) == pytest.approx(expected[0], abs=1e-6)


def test_no_words_have_no_parts_and_no_windows() -> None:
    assert part_ranges(np.zeros(0, np.uint8)) == []
    assert window_bounds(np.zeros(0, np.uint8), "6/1").shape == (0, 2)


def test_windows_of_the_second_part_count_on_from_the_first() -> None:
    assert window_bounds(make_counts([(2, 2), (7, 7)]), "6/1").tolist() == [[0, 1], [2, 7], [3, 8]]


def test_a_covering_span_is_the_unit_mean_of_its_tokens() -> None:
    vectors = np.array([[3, 0], [0, 4], [0, 0]], np.float32)
    # the last word has no token
    words = np.array([[0, 1, 0, 1], [2, 3, 1, 2], [4, 5, 2, 2]], np.int32)
    coded = pack(PassageTokens(vectors[:2], words, spans.counts(3, 3)))
    # windows of one word: (3, 0), (0, 4), nothing; of two: (3, 4) / 5, and (0, 4) with nothing
    covering_vectors = window_vectors(coded, "1+2/2")
    assert window_bounds(coded.counts, "1+2/2").tolist() == [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]
    np.testing.assert_allclose(
        covering_vectors, [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]], atol=0.005
    )


@sixty_examples
@given(st.integers(0, 2**32 - 1), st.sampled_from(POLICIES))
def test_the_cosines_of_covering_spans_are_those_of_the_exact_step(seed: int, policy: str) -> None:
    random = np.random.default_rng(seed)
    counts = make_counts([(int(words), int(words)) for words in random.integers(1, 40, size=3)])
    coded = pack_words(random.standard_normal((len(counts), 32)).astype(np.float32), counts)
    query = random.standard_normal(32).astype(np.float32)
    query /= np.linalg.norm(query)
    exact = dict(
        zip(
            zip(*(edges.tolist() for edges in spans.bounds(counts)), strict=True),
            word_codes.cosines(query, coded).tolist(),
            strict=True,
        )
    )
    for (first, last), cosine in zip(
        window_bounds(counts, policy).tolist(),
        (window_vectors(coded, policy) @ query).tolist(),
        strict=True,
    ):
        # a norm is off by half a step, of a sum of lengths that is about sqrt(20) times as long,
        # and hardly ever twice that
        assert cosine == pytest.approx(exact[first, last], abs=0.001, rel=0.5 / 250 * 20**0.5 * 2)
