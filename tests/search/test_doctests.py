"""The examples in the docstrings of the public calls run, and print what they say."""

from __future__ import annotations

import asyncio
import doctest
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hybrid_search
from hybrid_search import api, async_client, connect
from hybrid_search.client import Client, client
from hybrid_search.ingest.sources.files import SAMPLE
from hybrid_search.ingest.types import SourceLine
from hybrid_search.topics import topics
from tests.conftest import read_calls

MODULES = (api, client, async_client, topics)
MODULE_NAMES = {module.__name__ for module in MODULES}
CALLS = {"shop-001", "shop-008", "telecom-002", "bank-001", "travel-001"}
"""Calls of the bundled sample that the examples find."""

UNEXPLAINED = {"close"}
"""Methods whose one sentence says it all."""


@pytest.fixture(scope="module")
def few_calls_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An embedded index ``calls`` of a few calls of the sample."""
    folder = tmp_path_factory.mktemp("doctests")
    with connect(f"embedded:{folder}") as few_calls:
        few_calls.ingest(
            [call for call in read_calls(SAMPLE) if call["id"] in CALLS],
            rejects=folder / "rejected.jsonl",
        )
    return f"embedded:{folder}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_print_what_they_say(
    module: ModuleType, few_calls_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", few_calls_url)
    names = {"hybrid_search": hybrid_search, "asyncio": asyncio, "SourceLine": SourceLine}
    outcome = doctest.testmod(module, extraglobs=names)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def public_calls() -> dict[str, Callable[..., Any]]:
    functions = inspect.getmembers(api, inspect.isfunction)
    methods = inspect.getmembers(Client, inspect.isfunction)
    return {
        value.__qualname__: value
        for name, value in (*functions, *methods)
        if not name.startswith("_") and value.__module__ in MODULE_NAMES
    }


@pytest.mark.parametrize("name", sorted(public_calls()))
def test_a_public_call_has_an_example(name: str) -> None:
    docstring = inspect.getdoc(public_calls()[name]) or ""
    assert ">>> " in docstring or name.rpartition(".")[2] in UNEXPLAINED
