"""The public names of ``hybrid_search``, and the signatures that programs rely on."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import hybrid_search
from hybrid_search import errors
from hybrid_search.async_client import AsyncClient
from hybrid_search.client import Client
from hybrid_search.config import ConnectOptions
from hybrid_search.parameters import read_table
from hybrid_search.search.query import DEFAULTS

EMPTY = inspect.Parameter.empty

SIGNATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "query": (
        {"phrase": EMPTY},
        {**DEFAULTS, "url": None},
    ),
    "best_spans": (
        {"phrase": EMPTY, "text": EMPTY},
        {"k": 1, "context": None, "spans_by": "score", "speaker": (), "not_": ()},
    ),
    "check_quote": ({"text": EMPTY}, {"index": "calls", "places": 100, "url": None}),
    "phrase_similarity": ({"a": EMPTY, "b": EMPTY}, {"context1": None, "context2": None}),
    "connect": (
        {"url": None},
        dict.fromkeys(read_table(ConnectOptions)),
    ),
}
"""The parameters of each function: positional ones, and those only by name, with their
defaults.
"""

LAZY = {"AsyncClient", "__version__"}
"""Bound when they are asked for, or not by a name that ``vars`` gives."""


def parameters(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    signature_parameters = inspect.signature(function).parameters.values()
    by_place = {
        parameter.name: parameter.default
        for parameter in signature_parameters
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    }
    return by_place, {
        parameter.name: parameter.default
        for parameter in signature_parameters
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert hybrid_search.__all__ == sorted(set(hybrid_search.__all__))


def test_all_is_what_the_package_binds_and_nothing_else() -> None:
    """Imported modules are attributes of the package too, but no public names."""
    helpers = {"TYPE_CHECKING", "Any"}
    bound = {
        name
        for name, value in vars(hybrid_search).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    } - helpers
    assert bound | LAZY == set(hybrid_search.__all__)


def test_dir_lists_the_names_that_are_imported_late() -> None:
    program = "import hybrid_search; print(*dir(hybrid_search))"
    names = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(hybrid_search.__all__) <= set(names)


@pytest.mark.parametrize("name", hybrid_search.__all__)
def test_every_public_name_can_be_had_and_says_what_it_is(name: str) -> None:
    value = getattr(importlib.import_module("hybrid_search"), name)
    assert isinstance(value, str) or inspect.getdoc(value)


def test_the_functions_are_those_with_a_signature_here() -> None:
    assert {
        name for name in hybrid_search.__all__ if inspect.isfunction(getattr(hybrid_search, name))
    } == set(SIGNATURES)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_function_takes_what_was_promised_in_the_promised_order(name: str) -> None:
    by_place, by_name = parameters(getattr(hybrid_search, name))
    assert list(by_place.items()) == list(SIGNATURES[name][0].items())
    assert list(by_name.items()) == list(SIGNATURES[name][1].items())


@pytest.mark.parametrize("name", ["query", "check_quote", "best_spans", "phrase_similarity"])
def test_a_method_of_the_client_takes_what_its_function_does(name: str) -> None:
    by_place, by_name = parameters(getattr(Client, name))
    function = parameters(getattr(hybrid_search, name))
    # a method knows its URL
    assert list(by_name.items()) == [item for item in function[1].items() if item[0] != "url"]
    assert [name for name in by_place if name != "self"] == list(function[0])


@pytest.mark.parametrize(
    "name",
    [name for name in dir(AsyncClient) if not name.startswith("_") and hasattr(Client, name)],
)
def test_a_method_for_asyncio_takes_what_the_method_of_the_client_does(name: str) -> None:
    if inspect.isfunction(method := getattr(Client, name)):
        assert parameters(getattr(AsyncClient, name)) == parameters(method)


def test_no_module_takes_the_name_of_a_function() -> None:
    """A module ``hybrid_search.query``, once imported, would hide the function of that name."""
    for name in hybrid_search.__all__:
        if inspect.isfunction(getattr(hybrid_search, name)):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"hybrid_search.{name}")


def test_every_error_is_public_and_caught_as_hybrid_search_error() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert raised <= set(hybrid_search.__all__)
    assert all(issubclass(getattr(errors, name), errors.HybridSearchError) for name in raised)


def test_every_error_stands_in_the_tree_at_the_head_of_its_module() -> None:
    drawn = errors.__doc__ or ""
    assert all(
        name in drawn
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    )


def test_errors_of_use_and_of_missing_extras_are_what_python_calls_them() -> None:
    assert issubclass(hybrid_search.UsageError, ValueError)
    assert issubclass(hybrid_search.MissingExtraError, ImportError)
