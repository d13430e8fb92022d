"""Word codes: they keep the spans' cosines, are stored as bytes, and refused when damaged."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.text import (
    codebook,
    joined_words,
    residual_codes,
    spans,
    word_codes,
    word_vectors,
)
from hybrid_search.text.types import Codebook, Floats, PassageTokens, WordCodes
from tests.helpers.random_codes import unit_query

seeds = st.integers(0, 2**32 - 1)
bits_of_a_number = st.sampled_from(residual_codes.BITS)
quick = settings(deadline=None, max_examples=40)


def make_codebook(seed: int, dimension: int) -> Codebook:
    codes = np.random.default_rng(seed).integers(-127, 128, (300, dimension)).astype(np.int8)
    return codebook.remember(codebook.read_centroids(codes, dimension))


def make_tokens(seed: int, dimension: int = 32) -> PassageTokens:
    """Return a passage of one to three parts, each word with none to two tokens."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, size=random.integers(1, 4)).tolist()
    counts = np.concatenate([spans.counts(size, size) for size in sizes])
    after = np.cumsum(random.integers(0, 4, size=len(counts)))
    first = np.concatenate([[0], after[:-1]])
    # some words have tokens before them that are of no word
    first = np.minimum(first + (random.random(len(counts)) < 0.2), after)
    places = np.arange(len(counts)) * 4 + random.integers(0, 300)
    words = np.stack([places, places + 3, first, after], axis=1).astype(np.int32)
    vectors = random.standard_normal((int(after[-1]), dimension)).astype(np.float32)
    return PassageTokens(vectors, words, counts)


def make_codes(
    seed: int, dimension: int = 32, bits: int = 4, *, has_boundaries: bool = False
) -> WordCodes:
    tokens = make_tokens(seed, dimension)
    boundaries = np.arange(len(tokens.words), dtype=np.uint8) if has_boundaries else None
    return word_codes.pack(tokens, make_codebook(1, dimension), bits, boundaries)


def no_codes(dimension: int = 32) -> WordCodes:
    nothing = PassageTokens(
        np.zeros((0, dimension), np.float32), np.zeros((0, 4), np.int32), np.zeros(0, np.uint8)
    )
    return word_codes.pack(nothing, make_codebook(1, dimension), 4)


def are_equal(first: WordCodes, second: WordCodes) -> bool:
    return all(
        np.array_equal(getattr(first, field.name), getattr(second, field.name))
        for field in fields(WordCodes)
        if field.name != "codebook"
    )


def float_cosines(query: Floats, vectors: Floats, codes: WordCodes) -> Floats:
    """Return the cosines of all spans of rows of these vectors, written out in float64."""
    first, last = spans.bounds(codes.counts)
    running = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, 0, np.float64)])
    sums = running[codes.rows[last] + 1] - running[codes.rows[first]]
    lengths = np.linalg.norm(sums, axis=1)
    return np.asarray(np.where(lengths > 1e-6, sums @ query / np.maximum(lengths, 1e-6), 0.0))


@quick
@given(seeds, bits_of_a_number)
def test_a_cosine_is_that_of_the_decoded_words(seed: int, bits: int) -> None:
    """A norm is at most half a step off, of a sum of lengths that is `ratio` times as long."""
    codes, query = make_codes(seed, bits=bits), unit_query(seed, 32)
    vectors = word_codes.vectors(codes)
    expected = float_cosines(query, vectors, codes)
    half_step = 0.5 / np.maximum(codes.norms.astype(np.float64), 1.0)
    tolerance = np.abs(expected) * 1.01 * half_step / (1 - half_step.clip(max=0.5)) + 1e-3
    is_long = codes.norms > 5  # tokens that cancel each other out have no direction worth a byte
    errors = np.abs(word_codes.cosines(query, codes) - expected)
    assert np.all((errors <= tolerance)[is_long])


@pytest.mark.parametrize(("bits", "largest"), [(2, 0.024), (3, 0.013), (4, 0.0069), (8, 0.0025)])
def test_cosines_are_near_those_of_the_vectors(bits: int, largest: float) -> None:
    """The root mean square error of normal vectors of 288 numbers, by all spans of 200 words.

    Rounding loses D = .1175, .0345, .0095 or .0001 of the energy of what a centroid leaves. That
    turns a unit vector by an angle of sine sqrt(D), in a random direction of 287, so a cosine is
    off by sqrt(D / 287) = .0202, .0110, .0058, .0006; a norm's byte adds a cosine of .06 times
    .0012, and a fifth is left for chance, and .0018 for the parts in a byte each.
    """
    random = np.random.default_rng(2)
    vectors = random.standard_normal((200, 288)).astype(np.float32)
    numbers = np.arange(200)
    words = np.stack([4 * numbers, 4 * numbers + 3, numbers, numbers + 1], axis=1).astype(np.int32)
    counts = spans.counts(200, 200)
    codes = word_codes.pack(PassageTokens(vectors, words, counts), codebook.plain(288), bits)
    query = unit_query(3, 288)
    errors = word_codes.cosines(query, codes) - float_cosines(query, vectors, codes)
    assert np.sqrt(np.mean(errors**2)) < largest


@quick
@given(seeds, bits_of_a_number)
def test_a_word_is_near_what_is_stored_of_it(seed: int, bits: int) -> None:
    """What is stored of a word has its length, but for the rounding of its two parts.

    A length is a float16 (2**-11); the parts are within half a step of 255 and of 128.
    """
    tokens = make_tokens(seed)
    used = make_codebook(1, 32)
    codes = word_codes.pack(tokens, used, bits)
    stored = np.linalg.norm(word_codes.vectors(codes), axis=1)
    lengths = codes.lengths.astype(np.float32)
    assert len(lengths) >= len(codes.words)
    assert np.all(np.abs(stored - lengths) <= lengths * (1 / 255 + 1e-3))
    sums = spans.running_sums(tokens.vectors)
    expected = np.linalg.norm(sums[tokens.words[:, 3]] - sums[tokens.words[:, 2]], axis=1)
    np.testing.assert_allclose(lengths[codes.rows], expected, rtol=2**-11 + 1e-5, atol=1e-4)


def test_a_centroid_is_stored_exactly() -> None:
    used = make_codebook(5, 64)
    vectors = codebook.turn(used.centroids[:20])
    centroids, centroid_parts, residual_parts, _, _ = word_vectors.encode(vectors, used, 2)
    assert centroids.tolist() == list(range(20))
    assert centroid_parts.tolist() == [255] * 20
    assert residual_parts.max() <= 1  # what float32 leaves of nothing


def test_turning_twice_changes_nothing_and_once_no_cosine() -> None:
    vectors = np.random.default_rng(1).standard_normal((7, 45)).astype(np.float32)
    turned = codebook.turn(vectors)
    np.testing.assert_allclose(codebook.turn(turned), vectors, atol=1e-5)
    np.testing.assert_allclose(turned @ turned.T, vectors @ vectors.T, atol=1e-4)


@quick
@given(seeds, bits_of_a_number, st.booleans())
def test_codes_survive_their_bytes(seed: int, bits: int, has_boundaries: bool) -> None:
    codes = make_codes(seed, 13, bits, has_boundaries=has_boundaries)
    read = word_codes.read(word_codes.to_bytes(codes))
    assert are_equal(codes, read)
    assert read.codebook is codes.codebook
    assert word_codes.has_own_norms(read)
    np.testing.assert_array_equal(
        word_codes.cosines(unit_query(seed, 13), codes),
        word_codes.cosines(unit_query(seed, 13), read),
    )


def test_a_passage_without_words_survives_its_bytes() -> None:
    read = word_codes.read(word_codes.to_bytes(no_codes()))
    assert are_equal(no_codes(), read)
    assert word_codes.cosines(unit_query(0, 32), read).tolist() == []


@pytest.mark.parametrize(("bits", "expected"), [(2, 72), (4, 144)])
def test_a_word_costs_its_numbers_and_ten_bytes(bits: int, expected: int) -> None:
    codes = make_codes(1, 288, bits)
    header, span_bytes = 24, int(codes.counts.sum())
    places = 2 * (2 if codes.words[0, 0] > 255 else 1)
    word_bytes = expected + 8 + places
    row_bytes = (len(codes.lengths) - len(codes.words)) * (expected + 8)
    expected_bytes = header + span_bytes + row_bytes + len(codes.words) * word_bytes
    assert len(word_codes.to_bytes(codes)) == expected_bytes


def test_a_far_place_is_stored() -> None:
    codes = make_codes(1)
    far = replace(codes, words=codes.words + np.int32(70_000))
    assert word_codes.read(word_codes.to_bytes(far)).words[0, 0] == codes.words[0, 0] + 70_000


@quick
@given(
    st.lists(st.tuples(seeds, st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**20), st.integers(1, 255))),
    st.booleans(),
)
def test_stored_passages_are_joined_as_those_that_are_read(
    passages: list[tuple[int, bool]], changes: list[tuple[int, int, int]], is_cut: bool
) -> None:
    """Some have boundaries, and some have bytes that were changed or lost."""
    stored = [
        bytearray(word_codes.to_bytes(make_codes(seed, has_boundaries=has)))
        for seed, has in passages
    ]
    for passage, place, difference in changes:
        if passage < len(stored):
            stored[passage][place % len(stored[passage])] ^= difference
    if is_cut and stored:
        del stored[-1][-1:]
    query = unit_query(1, 32)
    for data in map(bytes, stored):
        joined = joined_words.join_stored([data], 32)
        read = word_codes.read(data)
        assert (joined is not None) == word_codes.is_sound(read, 32)
        if joined is not None:
            np.testing.assert_array_equal(
                word_codes.cosines(query, joined.codes), word_codes.cosines(query, read)
            )


def test_joined_passages_have_the_cosines_of_each() -> None:
    passages = [make_codes(seed) for seed in range(5)] + [no_codes()]
    query = unit_query(1, 32)
    joined = joined_words.join_sound(passages, 32)
    assert joined is not None
    together = joined_words.split_spans(word_codes.cosines(query, joined.codes), joined.span_counts)
    for cosines, codes in zip(together, passages, strict=True):
        np.testing.assert_allclose(cosines, word_codes.cosines(query, codes), atol=1e-5)


@pytest.mark.parametrize("cut", [0, 10, 23, 24, 50])
def test_half_a_field_is_refused(cut: int) -> None:
    data = word_codes.to_bytes(make_codes(1))[:cut]
    assert word_codes.read(data) is word_codes.UNREADABLE


def test_codes_of_an_unknown_codebook_are_refused() -> None:
    codes = make_codes(1)
    unknown = Codebook(codes.codebook.centroids, 77, codes.codebook.packed)
    data = word_codes.to_bytes(replace(codes, codebook=unknown))
    assert word_codes.read(data) is word_codes.UNREADABLE


def test_a_changed_code_does_not_fit_its_norms() -> None:
    codes = make_codes(1)
    lengths = codes.lengths.copy()
    lengths[3] *= 2
    assert word_codes.has_own_norms(codes)
    assert not word_codes.has_own_norms(replace(codes, lengths=lengths))


def test_a_token_of_two_words_counts_once_in_a_span_of_both() -> None:
    vectors = np.eye(3, 8, dtype=np.float32)
    words = np.array([[0, 3, 0, 2], [4, 7, 1, 3]], np.int32)  # both have the second token
    tokens = PassageTokens(vectors, words, spans.counts(2, 2))
    sums, rows = word_codes.sum_rows(tokens)
    assert rows.tolist() == [0, 1]
    assert sums[:, :3].tolist() == [[1, 0.5, 0], [0, 0.5, 1]]
    assert sums.sum(axis=0)[:3].tolist() == [1, 1, 1]


def test_a_mark_between_two_words_counts_in_a_span_of_both_alone() -> None:
    """Of "a, b." and "c" the comma lies in a span; the stop ends a turn, and lies in none."""
    vectors = np.eye(5, 8, dtype=np.float32)  # a, comma, b, stop, c
    words = np.array([[0, 1, 0, 1], [3, 4, 2, 3], [6, 7, 4, 5]], np.int32)
    counts = np.concatenate([spans.counts(2, 2), spans.counts(1, 1)])
    tokens = PassageTokens(vectors, words, counts)
    sums, rows = word_codes.sum_rows(tokens)
    assert rows.tolist() == [0, 2, 3]
    assert sums[:, :5].tolist() == np.eye(5)[[0, 1, 2, 4]].tolist()
    codes = word_codes.pack(tokens, codebook.plain(8), 8)
    comma = np.eye(8, dtype=np.float32)[1]
    # the spans are a, a to b, b, c; of three axes each has a cosine of 3 ** -.5 with their sum
    expected = [0, 3**-0.5, 0, 0]
    assert word_codes.cosines(comma, codes).tolist() == pytest.approx(expected, abs=0.01)
    assert are_equal(codes, word_codes.read(word_codes.to_bytes(codes)))


def test_codes_that_are_sent_to_another_process_are_read_there_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    centroids = np.random.default_rng(5).integers(-127, 128, (64, 8), np.int8)
    used = codebook.read_centroids(centroids, 8)
    vectors = np.random.default_rng(6).standard_normal((50, 8)).astype(np.float32)
    sent = pickle.dumps(used)
    monkeypatch.setattr(codebook, "_loaded", {})
    received = pickle.loads(sent)  # noqa: S301 (our own)
    assert (received.identity, received.dimension) == (used.identity, 8)
    nearest = [codebook.find_nearest(vectors, book).tolist() for book in (used, received)]
    assert nearest[0] == nearest[1]
    assert pickle.loads(sent) is received  # noqa: S301
