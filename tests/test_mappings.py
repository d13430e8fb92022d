"""What the servers are told: the fields of a passage and no other, every placeholder filled, the same for both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import mappings
from hybrid_search.backends.base import IndexSpec, Stored
from hybrid_search.errors import UsageError
from hybrid_search.types import Entry, Passage

ROOT = Path(__file__).parent.parent / "mappings"
SPEC = IndexSpec("mini", "0123abcd", 384, "int8", "turn", "6/1", 1)

VECTOR = {"opensearch": ("knn_vector", "dimension"), "elasticsearch": ("dense_vector", "dims")}
"""What each server calls a vector and its dimension."""


def names(kind: type[Any]) -> set[str]:
    return {field.name for field in fields(kind)}


PASSAGE = (
    (names(Stored) - {"key", "bm25"})  # _id and _score
    | (names(Entry) - {"document", "passage"})  # whose fields these are:
    | (names(Passage) - {"parts"})  # the parts are the layout
)
"""The fields that a passage has: what is read back, what is written, where it lies in its document."""


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Everything in `node` that is neither object nor list, with the way to it."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, (*path, key))
    else:
        yield path, node


def properties(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = mappings.body(engine, SPEC)["mappings"]["properties"]
    return found


def written(engine: str) -> dict[tuple[str | int, ...], Any]:
    """The leaves of the file in the repository."""
    return dict(leaves(json.loads((ROOT / engine / "passages.json").read_text(encoding="utf-8"))))


def test_the_fields_of_a_passage_are_these() -> None:
    """Written out, so that whoever adds one sees that it is stored for every passage of every call."""
    where, what, derived = {"document_id", "ordinal", "start", "end", "passages"}, {"text", "metadata", "layout", "source_hash"}, {"tokens", "spans"}
    assert where | what | derived == PASSAGE


@pytest.mark.parametrize("engine", mappings.ENGINES)
def test_a_server_has_the_fields_of_a_passage_and_takes_no_other(engine: str) -> None:
    assert set(properties(engine)) == PASSAGE
    assert set(properties(engine)["spans"]["properties"]) == {"start", "end", "vector"}
    assert mappings.body(engine, SPEC)["mappings"]["dynamic"] == "strict"


def test_both_servers_are_told_the_same_but_for_the_vectors() -> None:
    told = {engine: mappings.body(engine, SPEC)["mappings"] for engine in mappings.ENGINES}
    vectors = {engine: each["properties"]["spans"]["properties"].pop("vector") for engine, each in told.items()}
    assert told["opensearch"] == told["elasticsearch"]
    for engine, (kind, dimension) in VECTOR.items():
        assert (vectors[engine]["type"], vectors[engine][dimension]) == (kind, 384)


@pytest.mark.parametrize("engine", mappings.ENGINES)
def test_the_analyzer_is_english_or_the_one_that_is_given(engine: str) -> None:
    assert properties(engine)["text"]["analyzer"] == "english"
    assert mappings.body(engine, SPEC, analyzer="standard")["mappings"]["properties"]["text"]["analyzer"] == "standard"


@pytest.mark.parametrize("engine", mappings.ENGINES)
def test_an_index_says_what_it_was_made_for(engine: str) -> None:
    assert IndexSpec(**mappings.body(engine, SPEC)["mappings"]["_meta"]["hybrid_search"]) == SPEC


@pytest.mark.parametrize("engine", mappings.ENGINES)
def test_what_is_sent_is_the_file_in_the_repository_with_its_placeholders_filled(engine: str) -> None:
    sent = dict(leaves(mappings.body(engine, SPEC)))
    assert set(sent) == set(written(engine))
    assert {path for path, value in written(engine).items() if value != sent[path]} == {
        path for path, value in written(engine).items() if str(value).startswith("$")
    }
    assert not [value for value in sent.values() if str(value).startswith("$")]


@pytest.mark.parametrize("engine", mappings.ENGINES)
def test_no_placeholder_hides_inside_a_longer_value_or_a_name(engine: str) -> None:
    assert all("$" not in str(value)[1:] and not any("$" in str(step) for step in path) for path, value in written(engine).items())


def test_there_is_a_file_for_every_engine_and_for_no_other() -> None:
    assert {path.parent.name for path in ROOT.glob("*/passages.json")} == set(mappings.ENGINES)


@pytest.mark.parametrize("engine", ["solr", "", "OpenSearch", "../mappings/opensearch"])
def test_a_server_of_another_kind_is_an_error_that_names_those_there_are(engine: str) -> None:
    with pytest.raises(UsageError, match="opensearch or elasticsearch"):
        mappings.body(engine, SPEC)


def test_a_body_may_be_changed_without_harm_to_the_next() -> None:
    mappings.body("opensearch", SPEC)["mappings"]["properties"].clear()
    assert set(properties("opensearch")) == PASSAGE
