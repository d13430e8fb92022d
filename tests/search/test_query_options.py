"""The parameters of a query: every place that names them has the same names and defaults."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any

import pytest
import typer

import hybrid_search
from hybrid_search.cli.app import app
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search.query import Query, QueryOptions, RequestOptions

DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in fields(Query) if field.default is not MISSING
}
OPTION_NAMES = {"facet": "facets"}
"""Options of the command line whose name is not that of the parameter: they are repeated."""

OTHER_OPTIONS = {"dry_run", "url", "model", "device", "precision", "as_json"}
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
    types["facets"] = "Sequence[str]"  # a query keeps them as a tuple
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
        ("fusion", ("best",)),
        ("group_by", ("turn", None)),
        ("refine", ("twice",)),
        ("compat", ("solr",)),
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


def test_an_unknown_name_is_a_type_error() -> None:
    options: Any = {"limit": 5}
    with pytest.raises(TypeError, match="limit"):
        hybrid_search.query("refund", **options)
