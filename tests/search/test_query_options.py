"""The parameters of a query: every place that names them has the same names and defaults."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid_search
from hybrid_search import connect
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.cli.commands import build_command
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.parameters import MAX_CONTEXT, MAX_PHRASE, MAX_PHRASES
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import DEFAULTS, PARAMETERS, Query
from tests.helpers.tiny_encoder import TinyEncoder, fill_index

NAN, INFINITY = float("nan"), float("inf")
OTHER_OPTIONS = {"dry_run", "url", "model", "device", "precision", "as_json", "output_format"}
"""Options of the command line that are no parameters of a query."""


def test_a_query_keeps_every_parameter_of_the_table() -> None:
    assert [field.name for field in fields(Query)] == ["phrases", *PARAMETERS]
    query = Query("refund")
    assert {name: getattr(query, name) for name in PARAMETERS} == DEFAULTS


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_example_of_a_parameter_is_taken(name: str) -> None:
    if PARAMETERS[name].example is not None:
        options: Any = {name: PARAMETERS[name].example}
        assert getattr(Query("refund", **options), name) != PARAMETERS[name].default


@pytest.mark.parametrize("function", [hybrid_search.query, Client.query, Client.requests])
def test_signature_and_docstring_explain_every_parameter_in_their_order(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    shown = {name: item.default for name, item in parameters.items() if name in PARAMETERS}
    assert shown == DEFAULTS
    section = (inspect.getdoc(function) or "").partition("Args:\n")[2].partition("\n\n")[0]
    explained = re.findall(r"^    (\w+): \w", section, flags=re.MULTILINE)
    assert explained == [name for name in parameters if name != "self"]
    assert "alpha: The weight of the span cosine" in section
    assert re.search(r"\(from\s+0\s+to\s+1;\s+default:\s+0\.5\)\.", section)


def test_the_command_line_has_the_same_parameters_and_defaults() -> None:
    command = build_command("query")
    options = {
        param.name: param.default or None
        for param in command.params
        if param.name not in {*OTHER_OPTIONS, "phrase", "help"}
    }
    assert options == {name: default or None for name, default in DEFAULTS.items()}


def test_one_facet_or_several_and_one_phrase_or_several() -> None:
    query = Query("refund", facets="sector")
    assert (query.phrases, query.facets) == (("refund",), ("sector",))
    query = Query(["refund", "money back"], facets=["sector", "date"])
    assert (query.phrases, query.facets) == (("refund", "money back"), ("sector", "date"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sizee", r"did you mean 'size'\?"),
        ("limit", r"did you mean 'size'\?"),
        ("top_k", r"did you mean 'size'\?"),
        ("filter", r"did you mean 'where'\?"),
        ("zzz", "use index, alpha, size,"),
    ],
)
def test_an_unknown_name_is_a_type_error_with_the_nearest(name: str, hint: str) -> None:
    options: Any = {name: 5}
    message = rf"^hybrid_search\.query\(\) got an unexpected keyword argument '{name}': {hint}"
    with pytest.raises(TypeError, match=message):
        hybrid_search.query("refund", **options)


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("alpha", (-0.01, 1.01, NAN, INFINITY, "0.5", True), "a number from 0 to 1"),
        ("size", (-1, 0, 10_001, 5.5, 10**30), "an integer from 1 to 10,000"),
        ("offset", (-1, None), "an integer of at least 0"),
        ("spans", (-1, 101, "3"), "an integer from 0 to 100"),
        ("feedback", (101, True), "an integer from 0 to 100"),
        ("min_score", (NAN, INFINITY, "high"), "a finite number"),
        ("min_probability", (-0.1, 1.1, NAN, "high"), "a number from 0 to 1"),
        ("index", (7,), "a string"),
        ("context", (b"text",), "a string"),
        ("sort", (["date"],), "a string"),
        ("facets", ([7], 7), "a string"),
        ("group_by", (5, None), "a string"),
        ("explain", ("yes",), "False or True"),
        ("highlight", (1,), "False or True"),
        ("refine", (["isolate"], "twice"), "None or 'isolate'"),
        ("spans_by", ("prior",), "'score' or 'cosine'"),
        ("fusion", (["rrf"], "best"), "'calibrated' or"),
        ("facets_over", ("pages",), "'window' or 'matches'"),
    ],
)
def test_an_error_names_one_parameter_its_value_and_what_is_allowed(
    name: str, values: tuple[Any, ...], allowed: str
) -> None:
    for value in values:
        options: Any = {name: value}
        with pytest.raises(UsageError, match=rf"^{name} is .*: it must be {allowed}") as error:
            Query("refund", **options)
        others = [other for other in PARAMETERS if f"{other} is" in str(error.value)]
        assert others == [name]


@pytest.mark.parametrize(
    "phrase",
    [None, 7, b"refund", {"refund": 1}, [], [7], ["refund", " "], "", " ", "\t\n", "\u3000"],
)
def test_what_is_no_phrase_is_refused(phrase: Any) -> None:
    with pytest.raises(UsageError, match="phrase is "):
        Query(phrase)


def test_phrases_and_context_have_limits_that_the_error_names() -> None:
    Query(["x" * MAX_PHRASE] * MAX_PHRASES, context="x" * MAX_CONTEXT)
    with pytest.raises(UsageError, match="phrase has 5,001 characters: it may have at most 5,000"):
        Query("x" * (MAX_PHRASE + 1))
    with pytest.raises(UsageError, match="phrase is a list of 101: give at most 100 phrases"):
        Query(["x"] * (MAX_PHRASES + 1))
    with pytest.raises(UsageError, match=r"context has 850,000 characters: .* at most 10,000"):
        Query("x", context="x" * 850_000)


def test_phrases_without_an_index_have_the_same_limits() -> None:
    too_long = "word " * MAX_PHRASE
    with connect("memory:") as client:
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
            (client.best_spans, (too_long, "text"), {}, "phrase"),
            (client.best_spans, ("word", "text"), {"context": too_long}, "context"),
            (client.best_spans, ("word", "text"), {"k": 1.5}, "k"),
            (client.best_spans, ("word", None), {}, "text"),
            (client.phrase_similarity, ("word", too_long), {}, "b"),
            (client.phrase_similarity, ("word", "word"), {"context1": too_long}, "context1"),
        ]
        for function, arguments, options, name in calls:
            with pytest.raises(UsageError, match=f"^{name} "):
                function(*arguments, **options)


TEXTS = st.text(max_size=5)
NUMBERS = st.integers() | st.floats() | st.builds(pow, st.just(10), st.just(5000))
LISTS = st.lists(NUMBERS | TEXTS | st.none(), max_size=3)
MAPPINGS = st.dictionaries(st.integers() | TEXTS, st.integers(), max_size=3)
OBJECTS = st.sampled_from(
    [np.zeros(3), np.float32(0.5), np.int64(5), 1j, b"bytes", Query, object()]
)
ANYTHING = st.none() | st.booleans() | NUMBERS | TEXTS | LISTS | MAPPINGS | OBJECTS


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    memory = MemoryBackend()
    fill_index(memory, [{"id": "a", "text": "some words", "sector": "bank", "stars": 3}])
    return memory


@settings(deadline=None, max_examples=200)
@given(
    ANYTHING | st.just("words"),
    st.dictionaries(st.sampled_from([*PARAMETERS]), ANYTHING, max_size=3),
    st.dictionaries(st.sampled_from(["sector", "stars", "id"]), ANYTHING),
)
def test_whatever_is_given_a_query_is_answered_or_refused(
    backend: MemoryBackend, phrase: Any, options: Any, where: dict[str, Any]
) -> None:
    with suppress(UsageError, IndexMissingError):
        query = Query(phrase, **{"where": where, **options})
        result = search(backend, TinyEncoder(), lambda *_: Calibration(), query)
        json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float16(0.5), Fraction(1, 2)])
def test_a_score_of_a_narrow_type_is_compared_without_a_warning(number: Any) -> None:
    assert Query("refund", min_score=number).min_score == 0.5


def test_numbers_of_other_libraries_become_those_of_json() -> None:
    numbers: Any = {"alpha": np.float32(0.5), "size": np.int64(3)}
    query = Query("a", **numbers)
    assert json.dumps([query.alpha, query.size]) == "[0.5, 3]"
    numbers["alpha"] = Fraction(1, 4)
    assert json.dumps(Query("a", **numbers).alpha) == "0.25"
