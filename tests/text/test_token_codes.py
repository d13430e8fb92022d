"""Token codes: they keep the spans' cosines, are stored as bytes, and refused when damaged."""

from __future__ import annotations

import json
import struct
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.encoder import Encoder, passage_codes
from hybrid_search.errors import IndexStoreError
from hybrid_search.ingest import document_parser
from hybrid_search.search import phrase_vector
from hybrid_search.text import passages, spans, token_codes
from hybrid_search.text.best_passages import best_passages, best_stored_passages
from hybrid_search.text.types import Document, Floats, TokenCodes, Turn

PHRASES = ["refund request", "cancel my account", "speak to a manager", "thank you"]
seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=50)


def random_codes(seed: int, dimension: int = 8) -> TokenCodes:
    """Return a passage of one to three parts, each word with one or two tokens."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, size=random.integers(1, 4)).tolist()
    counts = np.concatenate([spans.counts(size, size) for size in sizes])
    edges = np.concatenate([[0], np.cumsum(random.integers(1, 3, size=len(counts)))])
    places = np.arange(len(counts)) * 4
    words = np.stack([places, places + 3, edges[:-1], edges[1:]], axis=1).astype(np.int32)
    return token_codes.pack(
        random.standard_normal((int(edges[-1]), dimension)).astype(np.float32), words, counts
    )


def no_codes() -> TokenCodes:
    return token_codes.pack(
        np.zeros((0, 8), np.float32), np.zeros((0, 4), np.int32), np.zeros(0, np.uint8)
    )


def are_equal(first: TokenCodes, second: TokenCodes) -> bool:
    return all(
        np.array_equal(getattr(first, field.name), getattr(second, field.name))
        for field in fields(TokenCodes)
    )


def unit_query(seed: int, dimension: int = 8) -> Floats:
    query = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return np.asarray(query / np.linalg.norm(query), dtype=np.float32)


@quick
@given(seeds)
def test_a_code_is_within_half_a_step_of_its_element(seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((20, 8)).astype(np.float32)
    codes, scales = token_codes.quantize(vectors)
    assert (
        np.abs(codes).max(axis=1).tolist() == [127] * 20
    )  # the largest element of a row takes the last code
    assert np.all(np.abs(codes * scales[:, None] - vectors) <= 0.5001 * scales[:, None])


def test_codes_are_elements_over_a_scale() -> None:
    codes, scales = token_codes.quantize(np.array([[1.27, -0.635, 0.0], [0, 0, 0]], np.float32))
    # the scale is 1.27 / 127 = .01: 1.27 is 127, and -.635 lies between -63 and -64
    assert scales[0] == pytest.approx(0.01)
    assert codes[0].tolist() in ([127, -63, 0], [127, -64, 0])
    assert codes[1].tolist() == [0, 0, 0]


@quick
@given(seeds)
def test_codes_survive_their_bytes(seed: int) -> None:
    codes = random_codes(seed)
    read = token_codes.from_bytes(token_codes.to_bytes(codes))
    assert are_equal(codes, read)
    assert np.array_equal(
        token_codes.cosines(unit_query(seed), codes), token_codes.cosines(unit_query(seed), read)
    )


def test_a_passage_without_words_survives_its_bytes() -> None:
    read = token_codes.from_bytes(token_codes.to_bytes(no_codes()))
    assert are_equal(no_codes(), read)
    assert token_codes.cosines(unit_query(0), read).tolist() == []


def test_a_token_costs_its_codes_and_a_little() -> None:
    codes = random_codes(1, dimension=384)
    token_bytes = len(codes.codes) * (384 + 4)  # codes and a scale
    word_bytes = len(codes.words) * (16 + 1)
    span_bytes = int(codes.counts.sum()) * 2
    header_bytes = 20
    expected = token_bytes + word_bytes + span_bytes + header_bytes
    assert len(token_codes.to_bytes(codes)) == expected


@quick
@given(seeds, st.floats(0.01, 100))
def test_the_length_of_the_vectors_changes_no_cosine(seed: int, factor: float) -> None:
    codes = random_codes(seed)
    longer = token_codes.pack(
        token_codes.vectors(codes) * np.float32(factor), codes.words, codes.counts
    )
    np.testing.assert_allclose(
        token_codes.cosines(unit_query(seed), longer),
        token_codes.cosines(unit_query(seed), codes),
        atol=0.01,
    )


@quick
@given(seeds)
def test_many_passages_are_scored_together_as_each_by_itself(seed: int) -> None:
    all_codes = [
        random_codes(seed),
        no_codes(),
        random_codes(seed + 1),
        random_codes(seed),
        no_codes(),
    ] * 40  # 200: more than go into one product
    together = list(token_codes.span_cosines_by_passage(unit_query(seed), all_codes))
    assert len(together) == 200
    for codes, batch_cosines in zip(all_codes[:5], together[-5:], strict=True):
        assert batch_cosines is not None
        np.testing.assert_allclose(
            batch_cosines, token_codes.cosines(unit_query(seed), codes), atol=1e-5
        )
    best = best_passages(unit_query(seed), dict(enumerate(all_codes)))
    assert [best.cosines[number].max(initial=-1.0) for number in range(200)] == [
        max(span_cosines, default=-1.0) for span_cosines in together if span_cosines is not None
    ]


@quick
@given(
    st.lists(st.tuples(seeds, st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**20), st.integers(1, 255))),
    st.booleans(),
)
def test_stored_passages_are_scored_as_those_that_are_read(
    passages: list[tuple[int, bool]], changes: list[tuple[int, int, int]], is_cut: bool
) -> None:
    """Some have boundaries, and some have bytes that were changed or lost."""
    stored = []
    for seed, has_boundaries in passages:
        codes = random_codes(seed)
        boundaries = np.zeros(len(codes.words), np.uint8) if has_boundaries else None
        stored.append(bytearray(token_codes.to_bytes(replace(codes, boundaries=boundaries))))
    for number, place, change in changes:
        if number < len(stored):
            stored[number][place % len(stored[number])] ^= change
    if is_cut and stored:
        del stored[-1][changes[0][1] if changes else 10 :]
    data = dict(enumerate(map(bytes, stored)))
    codes_by_key = {key: token_codes.read(value) for key, value in data.items()}

    def take_four(ranked: list[int]) -> list[int]:
        return ranked[:4]

    expected = best_passages(unit_query(1), codes_by_key, take_four)
    best = best_stored_passages(unit_query(1), data, take_four)
    assert best.damaged == expected.damaged
    assert list(best.codes) == list(expected.codes) == list(best.cosines)
    for key, cosines in expected.cosines.items():
        np.testing.assert_allclose(best.cosines[key], cosines, atol=1e-6)
        assert are_equal(best.codes[key], codes_by_key[key])


def test_no_passages_are_no_cosines() -> None:
    assert list(token_codes.span_cosines_by_passage(unit_query(0), [])) == []
    assert not best_passages(unit_query(0), {}).cosines


def test_cosines_from_codes_are_those_of_the_vectors(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    # Over the whole sample and five phrases the worst span was off by .0042, the worst best span by
    # .0027: codes and float16 norms together.
    queries = [phrase_vector.query_vector(real_encoder, text) for text in PHRASES]
    for call in calls[:8]:
        document, _ = document_parser.parse(json.dumps(call).encode())
        pieces = list(passages.split(document))
        encodings = iter(real_encoder.encode(passage_codes.encoder_texts(document, pieces)))
        for passage in pieces:
            vectors, words, counts = token_codes.gather(
                passage, [next(encodings) for _ in passage.parts], real_encoder.info.dimension
            )
            inverse = spans.inverse(spans.norms(vectors, words[:, 2:], counts))
            packed = token_codes.pack(vectors, words, counts)
            for query in queries:
                exact = spans.cosines(vectors @ query, words[:, 2:], counts, inverse)
                cosines = token_codes.cosines(query, packed)
                assert np.abs(cosines - exact).max() < 0.005
                assert abs(cosines.max() - exact.max()) < 0.003


def test_gather_leaves_the_context_of_a_piece_out(real_encoder: Encoder) -> None:
    text = (
        ", ".join(f"item {number}" for number in range(150)) + "."
    )  # 300 words in one turn: pieces 0..99, 100..199, 200..299
    document = Document("d", text, (Turn(text),))
    second = list(passages.split(document))[1]
    (window,) = passage_codes.encoder_texts(document, [second])
    assert window.startswith("item 45, ")  # ten words before the piece
    (encoding,) = real_encoder.encode([window])
    vectors, words, counts = token_codes.gather(second, [encoding], real_encoder.info.dimension)
    own = encoding.offsets[:, 0] >= window.index("item 50")
    assert text[second.start :].startswith("item 50, ")
    np.testing.assert_array_equal(vectors, encoding.vectors[own])
    assert words[0].tolist() == [0, 4, 0, 1]
    assert counts.tolist() == [20] * 100 + [0] * 19


def test_gather_puts_the_tokens_of_the_parts_one_after_the_other(real_encoder: Encoder) -> None:
    text = "One two?\nThree."
    document = Document("d", text, (Turn("One two?"), Turn("Three.", 9)))
    (passage,) = passages.split(document)
    encodings = real_encoder.encode(passage_codes.encoder_texts(document, [passage]))
    vectors, words, counts = token_codes.gather(passage, encodings, real_encoder.info.dimension)
    # start, end, first token, token after the last; "?" and "." are tokens of no word, and end no
    # span
    assert words.tolist() == [[0, 3, 0, 1], [4, 7, 1, 2], [9, 14, 2, 3]]
    assert counts.tolist() == [2, 1, 1]
    np.testing.assert_array_equal(
        vectors, [encodings[0].vectors[0], encodings[0].vectors[1], encodings[1].vectors[0]]
    )


def test_gather_of_no_part_is_empty() -> None:
    document = Document("d", "...", (Turn("..."),))
    (passage,) = passages.split(document)
    vectors, words, counts = token_codes.gather(passage, [], 8)
    assert (vectors.shape, words.shape, counts.shape) == ((0, 8), (0, 4), (0,))


@quick
@given(seeds, st.data())
def test_bytes_cut_short_are_refused(seed: int, data: st.DataObject) -> None:
    good = token_codes.to_bytes(random_codes(seed))
    with pytest.raises(IndexStoreError, match="damaged"):
        token_codes.from_bytes(good[: data.draw(st.integers(0, len(good) - 1))])


def test_bytes_too_many_are_refused_with_both_lengths() -> None:
    good = token_codes.to_bytes(random_codes(3))
    with pytest.raises(
        IndexStoreError, match=rf"{len(good) + 1} bytes, {len(good)} by their header"
    ):
        token_codes.from_bytes(good + b"\0")


@pytest.mark.parametrize("place", range(20))
def test_a_header_with_any_byte_changed_is_refused(place: int) -> None:
    # magic, version, dimension, then the numbers of words, tokens and spans: each byte changes what
    # is expected
    data = bytearray(token_codes.to_bytes(random_codes(4)))
    data[place] ^= 0xFF
    with pytest.raises(IndexStoreError, match="damaged"):
        token_codes.from_bytes(bytes(data))


def test_other_data_is_refused() -> None:
    for data in (b"", b"HST1", b"{}" * 100, struct.pack("<4sHHIII", b"HST1", 3, 8, 0, 0, 0)):
        with pytest.raises(IndexStoreError, match=r"damaged.* [Ii]ngest"):
            token_codes.from_bytes(data)
