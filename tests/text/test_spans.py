"""The span arithmetic, compared with enumeration: each span's mean vector and cosine one by one."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.text import spans
from hybrid_search.text.types import Bytes, Floats, Ints
from tests.helpers.random_codes import unit_query

DIMENSION = 16
quick = settings(deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)


def best(scores: Floats, counts: Bytes, k: int) -> list[int]:
    """Run `spans.best` on spans that are counted in words."""
    first, last = spans.bounds(counts)
    return list(spans.best(scores, first, last + 1, k))


@dataclass(frozen=True)
class Layout:
    """The parts (words, core), the token range of each word, and the token vectors."""

    parts: list[tuple[int, int]]
    tokens: Ints
    vectors: Floats

    @property
    def counts(self) -> Bytes:
        return np.concatenate(
            [np.zeros(0, np.uint8), *(spans.counts(words, core) for words, core in self.parts)]
        )


def random_layout(seed: int) -> Layout:
    """Return up to three parts; words have no token, several, or share one with the word before."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 45, size=random.integers(1, 4)).tolist()
    parts = [(size, int(random.choice([size, random.integers(1, size + 1)]))) for size in sizes]
    rows, after = [], 0
    for _ in range(sum(sizes)):
        shared = after > 0 and random.random() < 0.1
        # a token between two words belongs to none
        first = after - shared + int(random.random() < 0.1)
        after = max(after, first + int(random.integers(1 if shared else 0, 4)))
        rows.append([first, after])
    vectors = random.standard_normal((after + 1, DIMENSION)).astype(np.float32)
    return Layout(parts, np.array(rows, np.int32), vectors)


def enumerate_spans(layout: Layout) -> list[tuple[int, int]]:
    """Return first and last word of every span, by the rule.

    A span starts in a part's core, has 1..20 words, and ends in the part.
    """
    word_bounds, before = [], 0
    for words, core in layout.parts:
        for first in range(core):
            ends = range(first, min(first + 20, words))
            word_bounds += [(before + first, before + end) for end in ends]
        before += words
    return word_bounds


def mean(layout: Layout, first: int, last: int) -> Floats:
    inside = layout.vectors[layout.tokens[first, 0] : layout.tokens[last, 1]]
    return np.asarray(inside.mean(axis=0) if len(inside) else np.zeros(DIMENSION), dtype=np.float32)


def sum_words(products: Floats, tokens: Ints) -> Floats:
    """Return the sum of the products of each word's tokens, float64 ``[words]``."""
    return np.array([products[first:after].sum(dtype=np.float64) for first, after in tokens])


@quick
@given(seeds)
def test_spans_are_numbered_as_they_are_enumerated(seed: int) -> None:
    layout = random_layout(seed)
    first, last = spans.bounds(layout.counts)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == enumerate_spans(layout)


@quick
@given(seeds)
def test_the_cosine_of_every_span_is_that_of_the_sum_of_its_words(seed: int) -> None:
    layout, query = random_layout(seed), unit_query(seed, DIMENSION)
    first_words, last_words = zip(*enumerate_spans(layout), strict=True)
    vectors = np.random.default_rng(seed).standard_normal((len(layout.tokens), DIMENSION))
    expected, lengths = [], []
    for first, last in zip(first_words, last_words, strict=True):
        vector = vectors[first : last + 1].sum(axis=0)
        lengths.append(float(np.linalg.norm(vector)))
        expected.append(float(vector @ query) / lengths[-1])
    inverse_norms = 1 / np.array(lengths)
    cosines = spans.cosines(
        (vectors @ query).astype(np.float32), np.arange(len(vectors)), layout.counts, inverse_norms
    )
    np.testing.assert_allclose(cosines, expected, atol=1e-6)


@quick
@given(seeds)
def test_the_norm_of_every_span_is_that_of_the_sum_of_its_tokens(seed: int) -> None:
    layout = random_layout(seed)
    expected = [
        np.linalg.norm(layout.vectors[layout.tokens[a, 0] : layout.tokens[b, 1]].sum(axis=0))
        for a, b in enumerate_spans(layout)
    ]
    norms = spans.norms(layout.vectors, layout.tokens, layout.counts)
    np.testing.assert_allclose(norms, expected, atol=1e-3)


def test_words_of_thousands_of_tokens_are_measured_as_others() -> None:
    # As base64 in a text. Every word but the last has 3,000 tokens (0, 1); the dot products of all
    # with each other would take 3.5 GB.
    counts = spans.counts(8, 8)
    token_ranges = [[3000 * word, 3000 * (word + 1)] for word in range(7)]
    tokens = np.array([*token_ranges, [21_000, 21_001]], np.int32)
    vectors = np.tile(np.array([0, 1], np.float32), (21_001, 1))
    vectors[-1] = [4, 0]
    first, last = spans.bounds(counts)
    expected = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        tokens_inside = 3000 * (min(b, 6) - a + 1)
        expected.append(np.hypot(4 if b == 7 else 0, tokens_inside))
    tracemalloc.start()
    try:
        np.testing.assert_allclose(spans.norms(vectors, tokens, counts), expected, rtol=1e-6)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@quick
@given(seeds)
def test_running_sums_give_the_mean_of_any_tokens(seed: int) -> None:
    vectors = random_layout(seed).vectors
    sums = spans.running_sums(vectors)
    for start, end in np.random.default_rng(seed).integers(0, len(vectors), size=(10, 2)).tolist():
        if start < end:
            np.testing.assert_allclose(
                (sums[end] - sums[start]) / (end - start),
                vectors[start:end].mean(axis=0),
                atol=1e-4,
            )


def test_no_words_are_no_spans() -> None:
    counts, tokens = spans.counts(0, 0), np.zeros((0, 2), np.int32)
    norms = spans.norms(np.zeros((0, 4), np.float32), tokens, counts)
    assert [len(array) for array in (counts, *spans.bounds(counts), norms)] == [0, 0, 0, 0]
    assert (
        len(spans.cosines(np.zeros(0, np.float32), np.arange(0), counts, spans.inverse(norms))) == 0
    )
    assert best(np.zeros(0, np.float32), counts, 3) == []


def test_a_span_without_tokens_has_cosine_0() -> None:
    counts, tokens = spans.counts(2, 2), np.array([[0, 0], [0, 1]], np.int32)
    vectors = np.array([[3, 4]], np.float32)
    norms = spans.norms(vectors, tokens, counts)
    # word 0 has no token; words 0..1 and word 1 have the one of length 5
    assert norms.tolist() == [0, 5, 5]
    assert spans.inverse(norms).tolist() == pytest.approx([0, 0.2, 0.2])
    products = sum_words(vectors @ np.array([1, 0], np.float32), tokens)
    found = spans.cosines(products, np.arange(len(counts)), counts, spans.inverse(norms))
    assert found.tolist() == pytest.approx([0, 0.6, 0.6])


def test_no_rounding_gives_a_cosine_beyond_1() -> None:
    counts = spans.counts(1, 1)
    too_long = np.array([1.001], np.float16)  # what a rounded inverse norm may amount to
    assert spans.cosines(np.ones(1, np.float32), np.arange(1), counts, too_long).tolist() == [1.0]
    assert spans.cosines(-np.ones(1, np.float32), np.arange(1), counts, too_long).tolist() == [-1.0]


@quick
@given(seeds)
def test_a_word_has_the_tokens_that_share_a_character_with_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    words, offsets = random_intervals(random, 20), random_intervals(random, 40)
    # one character may be several tokens
    offsets = np.repeat(offsets, random.integers(1, 3, size=len(offsets)), axis=0)
    for (start, end), (first, after) in zip(
        words.tolist(), spans.token_bounds(offsets, words).tolist(), strict=True
    ):
        overlapping = [
            number for number, (a, b) in enumerate(offsets.tolist()) if max(a, start) < min(b, end)
        ]
        assert list(range(first, after)) == overlapping


def random_intervals(random: np.random.Generator, count: int) -> Ints:
    """Return ordered pieces of one text that do not overlap, with gaps between some."""
    edges = np.cumsum(random.integers(0, 3, size=2 * count) + np.tile([0, 1], count))
    return edges.reshape(-1, 2).astype(np.int32)


def test_a_word_whose_characters_the_tokenizer_dropped_has_an_empty_range_in_its_place() -> None:
    offsets, words = (
        np.array([[0, 3], [8, 12]], np.int32),
        np.array([[0, 3], [4, 7], [8, 12]], np.int32),
    )
    assert spans.token_bounds(offsets, words).tolist() == [[0, 1], [1, 1], [1, 2]]


@pytest.mark.parametrize("k", [0, 1, 2, 100])
def test_there_are_at_most_k_best_spans(k: int) -> None:
    scores = np.array([0.9, 0.1, 0.8], np.float32)  # words 0, 0-1, 1
    assert best(scores, spans.counts(2, 2), k) == [0, 2][:k]


@quick
@given(seeds)
def test_the_best_spans_are_those_of_a_greedy_choice(seed: int) -> None:
    layout = random_layout(seed)
    all_spans = enumerate_spans(layout)
    exact_scores = np.random.default_rng(seed).uniform(-1, 1, len(all_spans))
    scores = np.round(exact_scores, 1).astype(np.float32)  # one decimal: many are equal
    expected: list[tuple[int, int]] = []
    for number in sorted(range(len(all_spans)), key=lambda index: (-scores[index], index)):
        start, end = all_spans[number]
        if all(end < first or start > last for first, last in expected):
            expected.append((start, end))
    assert [all_spans[number] for number in best(scores, layout.counts, len(all_spans))] == expected
    assert [all_spans[number] for number in best(scores, layout.counts, 3)] == expected[:3]
