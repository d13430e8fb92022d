"""The tools: each calls a method of the client, with the parameters of the Python functions."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any

from hybrid_search.agents.word_budget import cut_texts
from hybrid_search.async_client import AsyncClient
from hybrid_search.parameters import check_integer, check_text
from hybrid_search.search.query import DEFAULTS
from hybrid_search.serve.operations import Operation, list_operations, list_topic_keys
from hybrid_search.serve.signatures import Schema

MAX_MATCHES, MATCHES = 1_000, 100
"""The most matches that `mine_topic` answers with, and how many unless it is told otherwise."""


MAX_WORDS: Schema = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
    "default": None,
    "description": "The most words of spans and texts to answer with, those of the best hits. "
    "left_out says how many spans and words there were besides.",
}


@cache
def list_tools() -> dict[str, Operation]:
    """Return all tools by their names."""
    operations = list_operations()
    size = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_MATCHES,
        "default": MATCHES,
        "description": "How many mentions to answer with.",
    }
    index = operations["query"].parameters["index"]
    keys = _list_keys_of_one_topic()
    return {
        "search": Operation(
            operations["query"].description,
            {**operations["query"].parameters, "max_words": MAX_WORDS},
            _search,
        ),
        "check_quote": operations["check_quote"],
        "best_spans": operations["best_spans"],
        "open_document": operations["open_document"],
        "mine_topic": Operation(
            "Find the mentions of one topic in an index, document by document.",
            {**keys, "index": index, "size": size},
            _mine_topic,
        ),
    }


def _list_keys_of_one_topic() -> dict[str, Schema]:
    """Return the keys of a topic that stands alone: phrases, and no rule over other topics."""
    keys = {name: dict(schema) for name, schema in list_topic_keys().items() if name != "rule"}
    keys["phrases"].pop("default", None)  # without a rule they are needed
    return keys


async def _search(client: AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a query, cut to a number of words if one is given."""
    max_words = arguments.pop("max_words", None)
    if max_words is not None:
        check_integer("max_words", max_words, 1)
    answer = await list_operations()["query"].run(client, arguments)
    if max_words is None:
        return answer
    hits, left_out = cut_texts(answer["hits"], max_words)
    return {**answer, "hits": hits, "left_out": left_out}


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
    return {"matches": matches[:size], "complete": len(matches) <= size, "documents": documents}
