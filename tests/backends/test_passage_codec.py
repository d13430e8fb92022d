"""The JSON of a passage: every value as it is, and vectors to five places.

No number of a vector has more digits than it needs.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.server import graph_vectors, passage_codec
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.text import window_policy
from tests.helpers import tiny_encoder

quick_settings = settings(deadline=None, max_examples=60)

integers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)  # such as a document may hold
values = st.one_of(st.booleans(), integers, st.floats(allow_nan=False, allow_infinity=False), texts)
names = st.text("abc", min_size=1)
metadata = st.dictionaries(
    names, st.one_of(values, st.dictionaries(names, values, max_size=2)), max_size=4
)


FLOATS = GraphVectors(tiny_encoder.make_spec().dimension)


def encode_passages(
    document: dict[str, Any], graph: GraphVectors = FLOATS, **options: Any
) -> list[dict[str, Any]]:
    """Return a document's passages as they are sent to a server."""
    spec, written_at = tiny_encoder.make_spec(), "2026-01-02T03:04:05+00:00"
    lines = [
        passage_codec.to_json(passage_codec.build_source(entry, spec, written_at, graph))
        for entry in tiny_encoder.make_entries(document)
    ]
    assert not any(b"\n" in line for line in lines)
    return [json.loads(line, **options) for line in lines]


@quick_settings
@given(metadata)
def test_metadata_is_written_as_it_was_given(metadata_object: dict[str, Any]) -> None:
    (passage,) = encode_passages({"id": "a", "text": "money back", "kept": [metadata_object]})
    assert passage["metadata"] == {"kept": [metadata_object]}


def test_a_vector_is_that_of_its_span_to_five_places() -> None:
    (entry,) = tiny_encoder.make_entries(
        call := {"id": "a", "text": "I want my money back today, please, and a parcel"}
    )
    (passage,) = encode_passages(call, parse_float=Decimal)
    expected = window_policy.window_vectors(entry.tokens, DEFAULT_POLICY)
    assert len(passage["spans"]) == len(expected) > 1
    for span, vector in zip(passage["spans"], expected.tolist(), strict=True):
        assert [Decimal(repr(round(number, 5))) for number in vector] == span["vector"]


@quick_settings
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20))
def test_no_number_of_a_vector_has_more_digits_than_five(numbers: list[float]) -> None:
    vector = np.round(np.array(numbers, np.float32), graph_vectors.DECIMALS)
    read = json.loads(passage_codec.to_json({"vector": vector}), parse_float=Decimal)["vector"]
    assert all(number == round(Decimal(number), 5) for number in read)
    np.testing.assert_allclose(
        [float(number) for number in read], numbers, atol=6e-6
    )  # half of the fifth place, and what float32 leaves out
