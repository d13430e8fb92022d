"""The tools: each calls a method of the client, with the parameters of the Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from hybrid_search import api
from hybrid_search.async_client import AsyncClient
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.parameters import check_integer, check_text
from hybrid_search.search.query import DEFAULTS
from hybrid_search.serve import openapi
from hybrid_search.serve.signatures import Schema, describe_parameters
from hybrid_search.text.near_names import hint_name

Run = Callable[[AsyncClient, dict[str, Any]], Awaitable[dict[str, Any]]]

MAX_MATCHES, MATCHES = 1_000, 100
"""The most matches that `mine_topic` answers with, and how many unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool.

    Attributes:
        description: What it does, for a language model.
        parameters: The schema of each parameter.
        run: Called with the client and the arguments; returns the answer.
    """

    description: str
    parameters: Mapping[str, Schema]
    run: Run

    @property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments."""
        required = [name for name, schema in self.parameters.items() if "default" not in schema]
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": required,
            "additionalProperties": False,
        }

    async def call(self, client: AsyncClient, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer.

        Raises:
            UsageError: If an argument is missing, unknown, or has a value that is not allowed.
        """
        for name in arguments:
            if name not in self.parameters:
                hint = hint_name(name, list(self.parameters))
                raise UsageError(f"there is no parameter {name[:80]!r}: {hint}")
        for name in self.input_schema["required"]:
            if name not in arguments:
                raise UsageError(f"{name} is missing: add it")
        return await self.run(client, dict(arguments))


@cache
def list_tools() -> dict[str, AgentTool]:
    """Return all tools by their names."""
    return {
        "search": AgentTool(_summarize(api.query), openapi.list_query_parameters(), _search),
        "best_spans": AgentTool(
            _summarize(api.best_spans), describe_parameters(api.best_spans), _best_spans
        ),
        "open_document": AgentTool(
            _summarize(Client.open_document),
            describe_parameters(Client.open_document),
            _open_document,
        ),
        "mine_topic": AgentTool(
            "Find the mentions of one topic in an index, document by document.",
            _list_topic_parameters(),
            _mine_topic,
        ),
    }


def _summarize(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _list_topic_parameters() -> dict[str, Schema]:
    """Return the keys of a topic as parameters, with the index and the number of matches."""
    size = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_MATCHES,
        "default": MATCHES,
        "description": "How many mentions to answer with.",
    }
    index = openapi.list_query_parameters()["index"]
    return {**openapi.list_topic_keys(), "index": index, "size": size}


async def _search(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    texts = openapi.take_texts(arguments)
    result = await client.query(arguments.pop("phrase"), **openapi.name_arguments(arguments))
    return result.to_dict(texts=texts)


async def _best_spans(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    phrase, text = arguments.pop("phrase"), arguments.pop("text")
    spans = await client.best_spans(phrase, text, **openapi.name_arguments(arguments))
    return {"spans": [span.to_dict() for span in spans]}


async def _open_document(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    view = await client.open_document(arguments.pop("document_id"), **arguments)
    return view.to_dict()


async def _mine_topic(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the first mentions of a topic, and whether these are all."""
    index, size = arguments.pop("index", DEFAULTS["index"]), arguments.pop("size", MATCHES)
    check_text("index", index)
    check_integer("size", size, 1, MAX_MATCHES)
    matches: list[dict[str, Any]] = []
    documents = 0
    async for block in client.mine_blocks([arguments], index=index):
        documents = block.documents
        missing = size + 1 - len(matches)
        matches += [match.to_dict() for match in islice(block.matches, missing)]
        if len(matches) > size:
            break
    return {
        "matches": matches[:size],
        "complete": len(matches) <= size,
        "documents": documents,
    }
