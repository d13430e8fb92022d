"""Vectors in two bits a number: what they stand for, and what is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_search.backends.server import two_bit_codes
from hybrid_search.text.types import Bytes, Floats

DIMENSIONS = [1, 2, 7, 16, 100, 128, 288, 384]


def make_unit_vectors(rows: int, dimension: int, seed: int = 0) -> Floats:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def decode(codes: Bytes, dimension: int) -> Floats:
    """Return the vectors that codes stand for, before they were mixed."""
    return two_bit_codes.mix(two_bit_codes.unpack(codes)[:, :dimension].astype(np.float32))


def find_cosines(vectors: Floats, others: Floats) -> Floats:
    products = np.einsum("ij,ij->i", vectors, others)
    cosines: Floats = products / np.linalg.norm(vectors, axis=1) / np.linalg.norm(others, axis=1)
    return cosines


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_mixing_keeps_cosines(dimension: int) -> None:
    vectors, others = make_unit_vectors(5, dimension), make_unit_vectors(5, dimension, seed=1)
    mixed = two_bit_codes.mix(vectors)
    assert mixed @ two_bit_codes.mix(others).T == pytest.approx(vectors @ others.T, abs=1e-5)
    assert two_bit_codes.mix(mixed) == pytest.approx(vectors, abs=1e-5)
    assert np.allclose(mixed, vectors) == (dimension % 2 == 1)


@given(dimension=st.sampled_from(DIMENSIONS), rows=st.integers(0, 9), seed=st.integers(0, 99))
def test_products_are_those_of_the_decoded_vectors(dimension: int, rows: int, seed: int) -> None:
    """The query is rounded to a 127th of its largest number.

    Each of `dimension` numbers is then off by half a step, and is multiplied with one of about 1 /
    sqrt(dimension), of 10 / 6.22 of that at most.
    """
    query = make_unit_vectors(1, dimension, seed + 100)[0]
    codes = two_bit_codes.encode(make_unit_vectors(rows, dimension, seed))
    assert codes.shape == (rows, two_bit_codes.count_bytes(dimension))
    scale = two_bit_codes.TYPICAL_LEVEL * np.sqrt(dimension)
    expected = decode(codes, dimension) @ query / scale
    largest = float(np.abs(two_bit_codes.mix(query[None])).max())
    bound = largest / 127 / 2 * np.sqrt(dimension) * 10 / 6.22 + 1e-5
    assert np.abs(two_bit_codes.multiply(codes, query) - expected).max(initial=0) <= bound


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_product_with_its_own_codes_is_that_of_the_decoded_vector(dimension: int) -> None:
    vectors = make_unit_vectors(9, dimension)
    codes = two_bit_codes.encode(vectors)
    scale = two_bit_codes.TYPICAL_LEVEL * np.sqrt(dimension)
    expected = (decode(codes, dimension) * vectors).sum(axis=1) / scale
    assert two_bit_codes.multiply_own(codes, vectors) == pytest.approx(expected, rel=1e-4)


def test_no_more_is_lost_than_two_bits_must_lose() -> None:
    """Four levels have a distortion of .1175 (Max 1960): the cosine is sqrt(1 - .1175) = .939."""
    vectors = make_unit_vectors(200, 288)
    cosines = find_cosines(decode(two_bit_codes.encode(vectors), 288), vectors)
    assert cosines.mean() == pytest.approx(0.939, abs=0.003)


def test_vectors_whose_first_numbers_are_the_largest_lose_no_more() -> None:
    falling = make_unit_vectors(200, 288) * np.linspace(2, 0.3, 288, dtype=np.float32)
    unit = falling / np.linalg.norm(falling, axis=1, keepdims=True)
    cosines = find_cosines(decode(two_bit_codes.encode(unit), 288), unit)
    assert cosines.mean() == pytest.approx(0.939, abs=0.003)


def test_codes_are_near_if_no_number_is_further_than_the_next_level() -> None:
    codes = np.array([[0b00_01_10_11, 0]], np.uint8)
    assert two_bit_codes.unpack(codes).tolist() == [[10, 3, -3, -10, *[-10] * 4]]
    assert two_bit_codes.are_near(codes, np.array([[0b01_01_01_11, 1]], np.uint8))
    assert not two_bit_codes.are_near(codes, np.array([[0b10_01_10_11, 0]], np.uint8))
    assert two_bit_codes.are_near(codes[:0], codes[:0])
