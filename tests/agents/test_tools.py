"""The tools for agents: what they take, what they answer, and what they refuse."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pytest

from hybrid_search import AsyncClient, api, connect
from hybrid_search.agents.tools import MAX_MATCHES, list_tools
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.serve.operations import describe_object
from hybrid_search.text.words import words
from hybrid_search.topics.topic_file import KEYS
from tests.helpers.cli import run_cli

TOPIC = {"name": "refund", "phrases": ["put the money back on my card"]}


def call(client: Client, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return asyncio.run(list_tools()[name].call(AsyncClient.from_client(client), arguments))


def names_of(function: Any) -> set[str]:
    parameters = inspect.signature(function).parameters
    return {name.rstrip("_") for name in parameters} - {"self", "url"}


def test_the_parameters_are_those_of_the_python_functions_with_their_defaults() -> None:
    tools = list_tools()
    of_query = names_of(api.query) - {"server_filter"}
    assert set(tools["search"].parameters) == {*of_query, "texts", "max_words"}
    assert set(tools["check_quote"].parameters) == names_of(api.check_quote)
    assert set(tools["best_spans"].parameters) == names_of(api.best_spans)
    assert set(tools["open_document"].parameters) == names_of(Client.open_document)
    assert set(tools["mine_topic"].parameters) == {*KEYS, "index", "size"}
    assert tools["search"].parameters["alpha"]["default"] == 0.5
    assert tools["search"].parameters["alpha"]["maximum"] == 1
    assert describe_object(tools["search"].parameters)["required"] == ["phrase"]
    assert describe_object(tools["mine_topic"].parameters)["required"] == ["name", "phrases"]
    for tool in tools.values():
        assert tool.description
        assert all(schema["description"] for schema in tool.parameters.values())
        assert "self" not in tool.parameters


def test_a_tool_answers_what_the_method_of_its_name_answers(sample: Client) -> None:
    answer = call(sample, "search", {"phrase": "money back", "size": 2, "texts": True})
    expected = sample.query("money back", size=2).to_dict(texts=True)
    assert answer["hits"] == expected["hits"]
    quoted = call(sample, "check_quote", {"text": "it's got ... bones", "places": 1})
    assert quoted == sample.check_quote("it's got ... bones", places=1).to_dict()
    assert quoted["found"]
    spans = call(sample, "best_spans", {"phrase": "refund", "text": "I want my money back."})
    assert spans["spans"][0]["text"] == "I want my money back"
    arguments = {"document_id": "shop-001", "phrase": "money back", "spans": 1}
    view = sample.open_document("shop-001", "money back", spans=1)
    assert call(sample, "open_document", arguments) == view.to_dict()
    assert call(sample, "open_document", {"document_id": "shop-001"})["spans"] == []


@pytest.mark.parametrize("max_words", [1, 20, 60, 300, 10_000])
def test_an_answer_has_at_most_so_many_words_and_says_how_many_it_lacks(
    sample: Client, max_words: int
) -> None:
    arguments = {"phrase": "money back", "size": 4, "texts": True}
    whole = call(sample, "search", arguments)["hits"]
    answer = call(sample, "search", {**arguments, "max_words": max_words})
    hits, left_out = answer["hits"], answer["left_out"]
    assert [hit["id"] for hit in hits] == [hit["id"] for hit in whole]
    size = count_words(hits)
    assert size <= max_words
    assert size + left_out["words"] == count_words(whole)
    spans, every = list_spans(hits), list_spans(whole)
    assert spans == every[: len(spans)]
    assert len(spans) + left_out["spans"] == len(every)
    if left_out["spans"]:
        next_span = every[len(spans)]
        assert size + count(next_span["text"]) > max_words
        assert not any(hit["text"] for hit in hits)
    elif left_out["words"]:
        assert size > max_words - LONGEST_SPAN


def test_what_is_left_of_a_passage_is_around_its_best_span(sample: Client) -> None:
    arguments = {"phrase": "money back", "size": 1, "spans": 1, "texts": True}
    (whole,) = call(sample, "search", arguments)["hits"]
    size = count(whole["spans"][0]["text"])
    (hit,) = call(sample, "search", {**arguments, "max_words": 2 * size + 10})["hits"]
    (span,) = hit["spans"]
    place = span["start"] - hit["start"]
    before, rest = hit["text"][:place], hit["text"][place:]
    assert rest.startswith(span["text"])
    assert (count(before), count(rest)) == (5, size + 5)
    assert sample.open_document(hit["id"]).text[hit["start"] :].startswith(hit["text"])
    end = hit["start"] + len(hit["text"])
    inside = [turn for turn in whole["turns"] if turn["start"] < end]
    assert hit["turns"] == [turn for turn in inside if turn["end"] > hit["start"]]
    (less,) = call(sample, "search", {**arguments, "max_words": 2 * size - 1})["hits"]
    assert (less["spans"], less["text"], less["turns"]) == ([span], "", [])


LONGEST_SPAN = 20
"""Words: a passage that is cut has no text if there is no room for its best span."""


def count_words(hits: list[dict[str, Any]]) -> int:
    texts = [hit["text"] for hit in hits] + [span["text"] for span in list_spans(hits)]
    return sum(map(count, texts))


def count(text: str) -> int:
    return len(words(text))


def list_spans(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [span for hit in hits for span in hit["spans"]]


def test_mining_answers_as_many_mentions_as_requested_and_tells_whether_these_are_all(
    sample: Client,
) -> None:
    topic = {**TOPIC, "phrases": ["I am waiting"], "threshold": 0.02}
    expected = [match.to_dict() for match in sample.mine([topic])]
    assert len(expected) > 3
    every = call(sample, "mine_topic", {**topic, "size": MAX_MATCHES})
    assert every["matches"] == expected
    assert every["complete"]
    assert every["documents"] == sample.describe("calls").documents
    exactly = call(sample, "mine_topic", {**topic, "size": len(expected)})
    assert (exactly["matches"], exactly["complete"]) == (expected, True)
    some = call(sample, "mine_topic", {**topic, "size": 3})
    assert (some["matches"], some["complete"]) == (expected[:3], False)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("search", {}, "phrase is missing: add it"),
        (
            "search",
            {"phrase": "a", "alfa": 1},
            "there is no parameter 'alfa': did you mean 'alpha'",
        ),
        ("search", {"phrase": "a", "limit": 1}, "no parameter 'limit': did you mean 'size'"),
        ("search", {"phrase": "a", "zzz": 1}, "no parameter 'zzz': use phrase, index"),
        ("search", {"phrase": "a", "url": "memory:"}, "there is no parameter 'url'"),
        ("search", {"phrase": "a", "alpha": "1"}, "alpha is '1': it must be a number"),
        ("search", {"phrase": "a", "texts": "yes"}, "texts is 'yes': it must be False or True"),
        ("search", {"phrase": "a", "max_words": 0}, "max_words is 0: it must be an integer of at"),
        ("check_quote", {"text": "a", "places": 0}, "places is 0: it must be an integer from 1"),
        ("check_quote", {"text": "..."}, "the text '...' has no word: give what was said"),
        ("best_spans", {"phrase": "a", "text": 1}, "text"),
        ("mine_topic", {"name": "a", "phrases": []}, "phrases is .*at least one phrase"),
        ("mine_topic", {**TOPIC, "size": 0}, "size is 0: it must be an integer from 1"),
        ("mine_topic", {**TOPIC, "index": 1}, "index is 1: it must be a string"),
        ("mine_topic", {**TOPIC, "threshold": 2}, "threshold is 2"),
    ],
)
def test_a_wrong_argument_is_one_error_that_names_it(
    sample: Client, name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        call(sample, name, arguments)


def test_an_empty_store_has_nothing_to_search() -> None:
    with connect("memory:") as client, pytest.raises(Exception, match="calls"):
        call(client, "search", {"phrase": "refund"})


@pytest.mark.skipif(bool(find_spec("mcp")), reason="the package mcp is installed here")
def test_without_the_protocols_package_the_command_names_its_extra() -> None:
    result = run_cli("mcp", "--url", "memory:")
    assert result.status == 2
    assert "mcp needs the package mcp" in result.stderr
    assert "[mcp]'" in result.stderr
    assert result.stdout == ""
