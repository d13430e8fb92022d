"""What is written for a passage, as JSON: every value as it is, a vector's numbers to five places and in no more digits."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search import covering
from hybrid_search.backends.server import documents
from tests import tiny

quick = settings(deadline=None, max_examples=60)

integers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)  # such as a document may hold
values = st.one_of(st.booleans(), integers, st.floats(allow_nan=False, allow_infinity=False), texts)
names = st.text("abc", min_size=1)
metadata = st.dictionaries(names, st.one_of(values, st.dictionaries(names, values, max_size=2)), max_size=4)


def written(document: dict[str, Any], **how: Any) -> list[dict[str, Any]]:
    """Its passages as a server is sent them."""
    read = [documents.to_json(documents.source(each, tiny.spec(), "2026-01-02T03:04:05+00:00")) for each in tiny.entries(document)]
    assert not any(b"\n" in each for each in read)
    return [json.loads(each, **how) for each in read]


@quick
@given(metadata)
def test_metadata_is_written_as_it_was_given(given: dict[str, Any]) -> None:
    (passage,) = written({"id": "a", "text": "money back", "kept": [given]})
    assert passage["metadata"] == {"kept": [given]}


def test_a_vector_is_that_of_its_span_to_five_places() -> None:
    (entry,) = tiny.entries(call := {"id": "a", "text": "I want my money back today, please, and a parcel"})
    (passage,) = written(call, parse_float=Decimal)
    expected = covering.cover(entry.tokens, covering.DEFAULT_POLICY)
    assert len(passage["spans"]) == len(expected) > 1
    for span, vector in zip(passage["spans"], expected.tolist(), strict=True):
        assert [Decimal(repr(round(number, 5))) for number in vector] == span["vector"]


@quick
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20))
def test_no_number_of_a_vector_has_more_digits_than_five(numbers: list[float]) -> None:
    vector = np.round(np.array(numbers, np.float32), documents.DECIMALS)
    read = json.loads(documents.to_json({"vector": vector}), parse_float=Decimal)["vector"]
    assert all(number == round(Decimal(number), 5) for number in read)
    np.testing.assert_allclose([float(number) for number in read], numbers, atol=6e-6)  # half of the fifth place, and what float32 leaves out
