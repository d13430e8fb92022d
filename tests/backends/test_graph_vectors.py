"""How vectors of covering windows are written for the graph of a server."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.graph_vectors import DECIMALS, GraphVectors, to_bytes
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.text import window_policy
from tests.helpers import tiny_encoder

numbers = st.lists(st.integers(-1000, 1000), min_size=1, max_size=300).filter(any)
quick_settings = settings(deadline=None, max_examples=50)


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ({"dimension": 6, "data_type": "byte"}, GraphVectors(6, are_bytes=True)),
        ({"dimension": 6, "data_type": "BYTE"}, GraphVectors(6, are_bytes=True)),
        ({"dims": 6, "element_type": "byte"}, GraphVectors(6, are_bytes=True)),
        ({"dimension": 6}, GraphVectors(6)),
        ({"dims": 6, "element_type": "float"}, GraphVectors(6)),
        ({"dims": 6, "element_type": "bfloat16"}, GraphVectors(6)),
        ({"dims": 99}, GraphVectors(8)),
        ({}, GraphVectors(8)),
    ],
)
def test_a_mapping_says_how_vectors_are_written(
    vector: dict[str, Any], expected: GraphVectors
) -> None:
    assert GraphVectors.from_mapping(vector, 8) == expected


@quick_settings
@given(numbers)
def test_the_largest_number_of_a_byte_vector_is_127_and_each_is_rounded(
    vector_numbers: list[int],
) -> None:
    vector = np.array(vector_numbers, np.float32)
    encoded = to_bytes(vector)
    largest = float(np.abs(vector).max())
    assert np.abs(encoded.astype(int)).max() == 127
    # half of a step of largest / 127, and what float32 leaves out
    np.testing.assert_allclose(encoded * (largest / 127), vector, atol=largest * (0.5 / 127 + 1e-5))


def test_a_vector_of_zeros_stays_one() -> None:
    assert to_bytes(np.zeros((2, 3), np.float32)).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_cosine_of_byte_vectors_is_that_of_the_vectors() -> None:
    """An error is even within half a step, so its standard deviation is a step / sqrt(12).

    The largest of 192 normal numbers of a unit vector is about 2.8 / sqrt(192), and a step is that
    by 127: 0.0016. Each vector adds its errors, weighted by the other unit vector, to a cosine, so
    that is off by 0.0016 / sqrt(12) * sqrt(2) = 0.00065, and 0.004 is six times that.
    """
    random = np.random.default_rng(1)
    vectors = random.normal(size=(200, 192)).astype(np.float32)
    encoded = to_bytes(vectors).astype(np.float64)
    np.testing.assert_allclose(cosines(encoded), cosines(vectors), atol=0.004)


def cosines(vectors: Any) -> Any:
    """Return the cosine of each vector with each."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("are_bytes", [False, True])
def test_a_query_is_cut_and_written_like_the_windows(are_bytes: bool) -> None:
    (entry,) = tiny_encoder.make_entries({"id": "a", "text": "I want my money back today"})
    graph = GraphVectors(5, are_bytes)
    windows = graph.encode_windows(entry.tokens, DEFAULT_POLICY)
    whole = window_policy.window_vectors(entry.tokens, DEFAULT_POLICY)
    assert windows.shape == (len(whole), 5)
    for vector, window in zip(whole, windows, strict=True):
        # one is cut after it was scaled to length 1, the other before: the last place may differ
        assert graph.encode_query(vector) == pytest.approx(window.tolist(), abs=1.1 * 10**-DECIMALS)


def test_numbers_of_bytes_are_integers_in_json() -> None:
    (entry,) = tiny_encoder.make_entries({"id": "a", "text": "I want my money back today"})
    fields = passage_codec.derive_fields(
        entry.tokens, 0, DEFAULT_POLICY, entry.text, GraphVectors(8, are_bytes=True)
    )
    spans = json.loads(passage_codec.to_json(fields), parse_float=Decimal)["spans"]
    assert {type(number) for span in spans for number in span["vector"]} == {int}
