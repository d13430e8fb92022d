"""The calls of a client with JSON in and out: paths of the service, and tools for agents."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hybrid_search import api
from hybrid_search.async_client import AsyncClient
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.parameters import check_choice
from hybrid_search.serve.signatures import Schema, describe_parameters, read_descriptions
from hybrid_search.text.near_names import hint_name
from hybrid_search.topics.rule import Rule
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topic_file import describe_topic

TEXTS: Schema = {
    "type": "boolean",
    "default": False,
    "description": "Add the text and the turns of each hit's best passage, and where it begins.",
}

TOPIC_ATTRIBUTES = {"not": "not_phrases", "speaker": "speakers"}
"""The attribute of a `Topic` that a key is explained by, where their names differ."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A call.

    Attributes:
        description: What it does, for a language model.
        parameters: The schema of each parameter; one without a default is required.
        run: Called with the client and the arguments; returns the answer.
    """

    description: str
    parameters: Mapping[str, Schema]
    run: Callable[[AsyncClient, dict[str, Any]], Awaitable[dict[str, Any]]]

    async def call(self, client: AsyncClient, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer; UsageError is raised for an argument that is not allowed."""
        check_names(arguments, self.parameters)
        return await self.run(client, dict(arguments))


@cache
def list_operations() -> dict[str, Operation]:
    """Return the calls that answer by the method of the client of their name."""
    of_query = {**describe_parameters(api.query), "texts": TEXTS}
    of_quote = describe_parameters(api.check_quote)
    of_spans = describe_parameters(api.best_spans)
    of_document = describe_parameters(Client.open_document)
    return {
        "query": Operation(_summarize(api.query), of_query, _query),
        "check_quote": Operation(_summarize(api.check_quote), of_quote, _check_quote),
        "best_spans": Operation(_summarize(api.best_spans), of_spans, _best_spans),
        "open_document": Operation(_summarize(Client.open_document), of_document, _open_document),
    }


@cache
def list_topic_keys() -> dict[str, Schema]:
    """Return the schemas of the keys of a topic or rule."""
    words = read_descriptions(Rule, "Attributes") | read_descriptions(Topic, "Attributes")
    return {
        name: {**schema, "description": words[TOPIC_ATTRIBUTES.get(name, name)]}
        for name, schema in describe_topic().items()
    }


def check_names(values: Mapping[str, Any], schemas: Mapping[str, Schema]) -> None:
    """Raise UsageError if a value is unknown, or one without a default is missing."""
    for name in values:
        if name not in schemas:
            hint = hint_name(name, list(schemas))
            raise UsageError(f"there is no parameter {name[:80]!r}: {hint}")
    for name, schema in schemas.items():
        if "default" not in schema and name not in values:
            raise UsageError(f"{name} is missing: add it")


def describe_object(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name, schema in properties.items() if "default" not in schema],
        "additionalProperties": False,
    }


def _summarize(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _rename(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by the names that Python gives them: ``not`` is a keyword."""
    return {"not_" if name == "not" else name: value for name, value in arguments.items()}


async def _query(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    texts = arguments.pop("texts", False)
    check_choice("texts", texts, (False, True))
    result = await client.query(**_rename(arguments))
    return result.to_dict(texts=texts)


async def _check_quote(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    check = await client.check_quote(**arguments)
    return check.to_dict()


async def _best_spans(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    spans = await client.best_spans(**_rename(arguments))
    return {"spans": [span.to_dict() for span in spans]}


async def _open_document(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    view = await client.open_document(**arguments)
    return view.to_dict()
