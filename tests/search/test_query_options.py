"""The parameters of a query: every place that names them has the same names and defaults."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid_search
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.cli.app import app
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.parameters import MAX_CONTEXT, MAX_PHRASE, MAX_PHRASES
from hybrid_search.search.phrase_vector import similarity
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import Query, QueryOptions, RequestOptions
from hybrid_search.search.span_search import best_spans
from tests.helpers.tiny_encoder import TinyEncoder, fill_index

DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in fields(Query) if field.default is not MISSING
}
OPTION_NAMES = {"facet": "facets"}
"""Options of the command line whose name is not that of the parameter: they are repeated."""

OTHER_OPTIONS = {"dry_run", "url", "model", "device", "precision", "as_json", "output_format"}
"""Options of the command line that are no parameters of a query."""


def documented_parameters(function: Any) -> dict[str, str]:
    """The section Args of a docstring: names and what is said of them."""
    docstring = inspect.getdoc(function) or ""
    section = docstring.partition("Args:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def test_all_fields_but_the_phrases_are_options() -> None:
    assert set(QueryOptions.__annotations__) == set(DEFAULTS)
    assert set(DEFAULTS) == {field.name for field in fields(Query)} - {"phrases"}
    assert set(RequestOptions.__annotations__) < set(DEFAULTS)


def test_options_and_fields_have_the_same_types() -> None:
    types = {field.name: field.type for field in fields(Query) if field.name in DEFAULTS}
    types["facets"] = "Sequence[str]"  # a query keeps them as tuples
    types |= dict.fromkeys(("speaker", "not_"), "str | Sequence[str] | None")
    option_types = {
        name: annotation.__forward_arg__
        for name, annotation in QueryOptions.__annotations__.items()
    }
    assert option_types == types


def test_the_docstring_lists_every_parameter_in_the_order_of_the_signature() -> None:
    parameters = list(inspect.signature(hybrid_search.query).parameters)
    assert list(documented_parameters(hybrid_search.query)) == parameters


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_docstring_names_the_default(name: str) -> None:
    text = documented_parameters(hybrid_search.query)[name]
    default = re.search(r"\(default: (``.*?``|[^),]*)", text)
    assert default, f"{name} has no default: {text}"
    assert default[1].strip("`").replace('"', "'") == repr(DEFAULTS[name])


def test_the_signature_shows_every_option_with_its_default() -> None:
    for function in (hybrid_search.query, Client.query):
        signature = inspect.signature(function)
        defaults = {
            name: signature.parameters[name].default
            for name in signature.parameters
            if name in DEFAULTS
        }
        assert defaults == DEFAULTS
        assert "options" not in signature.parameters
    request_signature = inspect.signature(Client.requests)
    assert set(request_signature.parameters) - {"self", "phrase"} == set(
        RequestOptions.__annotations__
    )


def test_the_command_line_has_the_same_parameters_and_defaults() -> None:
    command = typer.main.get_command(app).commands["query"]  # type: ignore[attr-defined]
    defaults = {
        OPTION_NAMES.get(param.name, param.name): param.default
        for param in command.params
        if param.name not in OTHER_OPTIONS
    }
    assert defaults.pop("phrase") is None
    assert defaults.pop("help", False) is False
    assert {name: value or None for name, value in defaults.items()} == {
        name: value or None for name, value in DEFAULTS.items()
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("alpha", (-0.1, 1.1)),
        ("size", (0, 10_001)),
        ("offset", (-1, 10_000)),
        ("spans", (-1, 101)),
        ("min_score", (float("nan"), float("inf"))),
        ("min_probability", (-0.1, 1.1, float("nan"))),
        ("fusion", ("best",)),
        ("group_by", ("turn", None)),
        ("refine", ("twice",)),
        ("facets_over", ("pages",)),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name: str, values: tuple[Any, ...]) -> None:
    for value in values:
        options: Any = {name: value}
        with pytest.raises(UsageError, match=f"{name} "):
            Query.from_options("refund", **options)


def test_one_facet_or_several_and_one_phrase_or_several() -> None:
    query = Query.from_options("refund", facets="sector")
    assert (query.phrases, query.facets) == (("refund",), ("sector",))
    query = Query.from_options(["refund", "money back"], facets=["sector", "date"])
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
    ("name", "value", "allowed"),
    [
        ("alpha", "0.5", "the weight of the span cosine, from 0 .* to 1"),
        ("alpha", True, "the weight of the span cosine"),
        ("size", 5.5, "an integer from 1 to 10,000"),
        ("size", 10**30, "an integer from 1 to 10,000"),
        ("offset", None, "an integer of at least 0"),
        ("spans", "3", "an integer from 0 to 100"),
        ("feedback", 101, "an integer from 0 to 100"),
        ("feedback", True, "an integer from 0 to 100"),
        ("min_score", "high", "a finite number"),
        ("min_probability", "high", "a number from 0 to 1"),
        ("index", 7, "a string"),
        ("context", b"text", "a string"),
        ("sort", ["date"], "a string"),
        ("facets", [7], "a string"),
        ("facets", 7, "a string"),
        ("explain", "yes", "False or True"),
        ("highlight", 1, "False or True"),
        ("refine", ["isolate"], "None or 'isolate'"),
        ("fusion", ["rrf"], "a string"),
    ],
)
def test_an_error_names_one_parameter_its_value_and_what_is_allowed(
    name: str, value: Any, allowed: str
) -> None:
    options: Any = {name: value}
    with pytest.raises(UsageError, match=rf"^{name} is .*: it must be {allowed}") as error:
        Query.from_options("refund", **options)
    others = [other for other in DEFAULTS if f"{other} is" in str(error.value)]
    assert others == [name]


def test_an_offset_behind_the_list_is_named_with_the_way() -> None:
    message = r"^offset is 9995: with a size of 10 the best 100 hits are listed\. .* use mine$"
    with pytest.raises(UsageError, match=message):
        Query.from_options("refund", offset=9995, size=10)


def test_no_facets_are_none() -> None:
    options: Any = {"facets": None}
    assert Query.from_options("refund", **options).facets == ()


@pytest.mark.parametrize("phrase", [None, 7, b"refund", {"refund": 1}, [], [7], ["refund", " "]])
def test_what_is_no_phrase_is_refused(phrase: Any) -> None:
    with pytest.raises(UsageError, match="phrase is "):
        Query.from_options(phrase)


def test_phrases_and_context_have_limits_that_the_error_names() -> None:
    Query.from_options(["x" * MAX_PHRASE] * MAX_PHRASES, context="x" * MAX_CONTEXT)
    with pytest.raises(UsageError, match="phrase has 5,001 characters: it may have at most 5,000"):
        Query.from_options("x" * (MAX_PHRASE + 1))
    with pytest.raises(UsageError, match="phrase is a list of 101: give at most 100 phrases"):
        Query.from_options(["x"] * (MAX_PHRASES + 1))
    with pytest.raises(UsageError, match=r"context has 850,000 characters: .* at most 10,000"):
        Query.from_options("x", context="x" * 850_000)


def test_phrases_without_an_index_have_the_same_limits() -> None:
    too_long = "word " * MAX_PHRASE
    calls: list[tuple[Any, tuple[Any, ...], str]] = [
        (best_spans, (too_long, "text"), "phrase"),
        (best_spans, ("word", "text", 1, too_long), "context"),
        (best_spans, ("word", "text", 1.5), "k"),
        (best_spans, ("word", None), "text"),
        (similarity, ("word", too_long), "b"),
        (similarity, ("word", "word", too_long), "context1"),
    ]
    for function, arguments, name in calls:
        with pytest.raises(UsageError, match=f"^{name} "):
            function(TinyEncoder(), *arguments)


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


@settings(deadline=None, max_examples=500)
@given(
    ANYTHING | st.just("words"),
    st.dictionaries(st.sampled_from([*DEFAULTS]), ANYTHING, max_size=3),
    st.dictionaries(st.sampled_from(["sector", "stars", "id"]), ANYTHING),
)
def test_whatever_is_given_a_query_is_answered_or_refused(
    backend: MemoryBackend, phrase: Any, options: Any, where: dict[str, Any]
) -> None:
    with suppress(UsageError, IndexMissingError):
        query = Query.from_options(phrase, **{"where": where, **options})
        result = search(backend, TinyEncoder(), lambda *_: Calibration(), query)
        json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float16(0.5), Fraction(1, 2)])
def test_a_score_of_a_narrow_type_is_compared_without_a_warning(number: Any) -> None:
    assert Query.from_options("refund", min_score=number).min_score == 0.5


def test_numbers_of_other_libraries_become_those_of_json() -> None:
    numbers: Any = {"alpha": np.float32(0.5), "size": np.int64(3)}
    query = Query(("a",), "calls", **numbers)
    assert json.dumps([query.alpha, query.size]) == "[0.5, 3]"
    numbers["alpha"] = Fraction(1, 4)
    assert json.dumps(Query(("a",), "calls", **numbers).alpha) == "0.25"
