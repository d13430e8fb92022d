"""Options of an index on a server, as they stand in a URL: valid ones, and the error for others."""

from __future__ import annotations

import pytest

from hybrid_search.backends.index_options import BOUNDS, KNN_ENGINES, QUANTIZATIONS, IndexOptions
from hybrid_search.errors import UsageError


def test_a_url_without_options_gives_the_defaults() -> None:
    assert IndexOptions.parse({}) == IndexOptions("english", "lucene", None, 192, 16, 100, 1, None)


def test_every_option_can_be_given_in_a_url() -> None:
    parameters = {
        "analyzer": "standard",
        "knn_engine": "faiss",
        "quantization": "fp16",
        "graph_dimension": "64",
        "m": "8",
        "ef_construction": "50",
        "shards": "3",
        "replicas": "0",
    }
    assert IndexOptions.parse(parameters) == IndexOptions(
        "standard", "faiss", "fp16", 64, 8, 50, 3, 0
    )


def test_an_unknown_option_is_named_beside_those_there_are_and_its_value_is_not_shown() -> None:
    with pytest.raises(UsageError, match=r"'shard'.*shards, replicas") as raised:
        IndexOptions.parse({"shard": "hunter2"})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_is_taken_at_its_bounds_and_refused_beyond_them(name: str) -> None:
    low, high = BOUNDS[name]
    assert [getattr(IndexOptions.parse({name: str(value)}), name) for value in (low, high)] == [
        low,
        high,
    ]
    for value in (low - 1, high + 1):
        with pytest.raises(UsageError, match=f"{name} is {value}: use {low} to {high}"):
            IndexOptions.parse({name: str(value)})


@pytest.mark.parametrize("value", ["", "many", "1.5", "0x10", "1e2", "NaN"])
def test_what_is_no_integer_is_refused_with_what_is_allowed(value: str) -> None:
    with pytest.raises(UsageError, match=f"m is {value!r}: use an integer, 2 to 100"):
        IndexOptions.parse({"m": value})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [("knn_engine", "nmslib", KNN_ENGINES), ("quantization", "int2", QUANTIZATIONS)],
)
def test_a_word_that_is_not_on_the_list_is_refused_with_the_list(
    name: str, value: str, allowed: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=f"{name} is {value!r}") as raised:
        IndexOptions.parse({name: value})
    assert all(word in str(raised.value) for word in allowed)


@pytest.mark.parametrize("name", ["analyzer", "knn_engine", "quantization"])
def test_an_empty_word_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        IndexOptions.parse({name: ""})


def test_options_made_in_python_are_checked_as_those_of_a_url() -> None:
    with pytest.raises(UsageError, match="m is 1: use 2 to 100"):
        IndexOptions(m=1)
