"""Answers of a server that are right but for one field, by the stage of the request.

The stages are those of `fake_cluster.find_stage`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.helpers.bad_answers.exchange import ESCAPES, BadAnswer, change_answer

ODD: dict[str, Any] = {
    "null": None,
    "a number": 7,
    "a text": "x",
    "a list": [[]],
    "an object": {"a": 1},
}
"""A value of each type, of which most are wrong in any place."""

Kinds = dict[str, BadAnswer]


def _set_each(values: Mapping[str, Any], label: str, *path: str | int) -> Kinds:
    """Return a kind for each of `values` in this place."""
    return {f"{label}: {name}": _set_field(value, *path) for name, value in values.items()}


def _set_field(value: Any, *path: str | int) -> BadAnswer:
    """Return the kind that has `value` in this place; ``*`` is every element of a list."""
    return change_answer(lambda answer: _replace(copy.deepcopy(answer), path, value))


def _replace(node: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value(node) if callable(value) else value
    first, rest = path[0], path[1:]
    if first == "*" and isinstance(node, list | dict):
        places: Any = range(len(node)) if isinstance(node, list) else list(node)
        for place in places:
            node[place] = _replace(node[place], rest, value)
    elif isinstance(node, dict) and (first in node or not rest):
        node[first] = _replace(node.get(first), rest, value)
    elif isinstance(node, list) and isinstance(first, int) and first < len(node):
        node[first] = _replace(node[first], rest, value)
    return node


def _drop_field(*path: str | int) -> BadAnswer:
    """Return the kind that lacks a key."""
    *parents, name = path

    def remove(parent: Any) -> Any:
        return {key: value for key, value in parent.items() if key != name}

    return _set_field(lambda node: remove(node) if isinstance(node, dict) else node, *parents)


LISTS: dict[str, Any] = {"an empty list": [], "a list of null": [None]}
ORDINALS: dict[str, Any] = {"negative": [-1], "enormous": [2**70], "a fraction": [0.5]}
SCORES: dict[str, Any] = {
    "negative": -1.0,
    "enormous": 1e308,
    "a boolean": True,
    "NaN": float("nan"),
}
STARTS: dict[str, Any] = {"negative": -5, "enormous": 2**70}
TOKENS: dict[str, Any] = {
    "not base64": ["§§§"],
    "empty": [""],
    "a few bytes": ["AAAA"],
    "zeros": ["A" * 400],
    "ones": ["/" * 400],
}

MAPPING_PLACES = (
    "",
    "_meta",
    "_meta.hybrid_search",
    "_meta.options",
    "properties",
    "properties.metadata",
    "properties.metadata.properties",
    "properties.metadata.properties.sector",
)


def _list_search_faults(*hits: str | int) -> Kinds:
    """Return what may be wrong with the hits at this place of an answer."""
    columns, source = (*hits, "*", "fields"), (*hits, "*", "_source")
    kinds = {
        **_set_each(ODD, "hits", *hits),
        **_set_each(ODD, "a hit", *hits, 0),
        **_set_each(ODD, "fields", *columns),
        **_set_each(ODD, "_source", *source),
        **_set_each(ODD | SCORES, "_score", *hits, "*", "_score"),
        **_set_each(ORDINALS, "ordinal", *columns, "ordinal"),
        **_set_each(TOKENS, "tokens", *columns, "tokens"),
        **_set_each(STARTS, "start", *source, "start"),
        "tokens: cut off": _set_field(lambda texts: [texts[0][:-40]], *columns, "tokens"),
        "layout: no JSON": _set_field("{", *source, "layout"),
        "text: shorter": _set_field("I", *source, "text"),
        "text: escapes": _set_field(lambda text: text + ESCAPES, *source, "text"),
        "document_id: escapes": _set_field([ESCAPES], *columns, "document_id"),
        "every hit twice": _set_field(lambda rows: rows * 2, *hits),
        "no hits": _drop_field(*hits),
    }
    for name in ("document_id", "ordinal", "tokens"):
        kinds |= _set_each(ODD | LISTS, name, *columns, name)
        kinds[f"no {name}"] = _drop_field(*columns, name)
    for name in ("text", "start", "layout", "metadata"):
        kinds |= _set_each(ODD, name, *source, name)
        kinds[f"no {name}"] = _drop_field(*source, name)
    return kinds


def _list_mapping_faults() -> Kinds:
    """Return what may be wrong with a mapping."""
    root = ("*", "mappings")
    spec = (*root, "_meta", "hybrid_search")
    kinds = {
        "an unknown setting": _set_field(1, *spec, "colour"),
        "dimension: negative": _set_field(-8, *spec, "dimension"),
        "dimension: enormous": _set_field(2**40, *spec, "dimension"),
        "policy: zero": _set_field("0/0", *spec, "policy"),
        "two indexes": _set_field(lambda answer: answer | {"calls-000002": {}}),
    }
    for place in MAPPING_PLACES:
        kinds |= _set_each(ODD, place or "mappings", *root, *filter(None, place.split(".")))
    for name in ("model", "fingerprint", "dimension", "precision", "policy", "schema"):
        kinds |= _set_each(ODD, name, *spec, name)
        kinds[f"no {name}"] = _drop_field(*spec, name)
    return kinds


NUMBERS: dict[str, Any] = {
    "null": None,
    "3": 3,
    "words": "three",
    "old": "1.0.0",
    "enormous": "9" * 400,
    "escapes": ESCAPES,
    "override": "7.10.2",
}

HELLO: Kinds = {
    **_set_each(ODD, "version", "version"),
    **_set_each(NUMBERS, "number", "version", "number"),
    "no version": _drop_field("version"),
    "another distribution": _set_field("other", "version", "distribution"),
    "distribution: a list": _set_field(["opensearch"], "version", "distribution"),
}

ITEMS: dict[str, Any] = {
    "none": [],
    "of null": [None],
    "of numbers": [1, 2, 3],
    "of empty objects": [{}],
    "of other actions": [{"eat": {}}],
}
STATUSES: dict[str, Any] = {
    "zero": 0,
    "enormous": 10**30,
    "409": 409,
    "429": 429,
    "400": 400,
    "500": 500,
}
ERRORS: dict[str, Any] = {
    "of a server": {"type": "x", "reason": "no"},
    "escapes": {"type": "x", "reason": ESCAPES},
}

BULK: Kinds = {
    **_set_each(ODD | ITEMS, "items", "items"),
    **_set_each(ODD | STATUSES, "status", "items", "*", "index", "status"),
    **_set_each(ODD | ERRORS, "error", "items", "*", "index", "error"),
    "no items": _drop_field("items"),
    "the first item alone": _set_field(lambda items: items[:1], "items"),
    "every item twice": _set_field(lambda items: items * 2, "items"),
    "items in another order": _set_field(lambda items: items[::-1], "items"),
    "items of others": _set_field("nobody#0", "items", "*", "index", "_id"),
    "items without ids": _drop_field("items", "*", "index", "_id"),
    "items without a status": _drop_field("items", "*", "index", "status"),
    "an error beside the items": _set_field({"type": "x"}, "error"),
}

SETTINGS: Kinds = _set_each(
    {
        "null": {"a": None},
        "two": {"a": {"settings": {}}, "b": {"settings": {}}},
        "empty": {"a": {"settings": {}}},
        "a text": {"a": {"settings": "x"}},
        "a word": {"a": {"settings": {"index.mapping.nested_objects.limit": "many"}}},
    },
    "settings",
)

COUNTS: Kinds = {
    **_set_each(ODD, "aggregations", "aggregations"),
    **_set_each(ODD, "documents", "aggregations", "documents"),
    **_set_each(ODD, "buckets", "aggregations", "documents", "buckets"),
    **_set_each(
        {name: [value] for name, value in ODD.items()} | {"half": [{"key": "call-1"}]},
        "a bucket",
        "aggregations",
        "documents",
        "buckets",
    ),
}

SEARCH: Kinds = {
    **_list_search_faults("hits", "hits"),
    "a shard failed": _set_field(1, "_shards", "failed"),
    "timed out": _set_field(True, "timed_out"),
}

RESPONSES: dict[str, Any] = {"none": [], "of null": [None, None, None], "of numbers": [1, 2, 3]}

MSEARCH: Kinds = {
    **_list_search_faults("responses", 0, "hits", "hits"),
    **_set_each(ODD | RESPONSES, "responses", "responses"),
    "no responses": _drop_field("responses"),
    "the first response alone": _set_field(lambda responses: responses[:1], "responses"),
    "a response too much": _set_field(lambda responses: [*responses, responses[0]], "responses"),
    "a response with an error": _set_field({"error": {"type": "x"}, "status": 400}, "responses", 0),
    "a response with a text for an error": _set_field({"error": "no"}, "responses", 0),
    "a response with an odd status": _set_field({"error": {}, "status": "x"}, "responses", 0),
    "a shard failed": _set_field(1, "responses", "*", "_shards", "failed"),
    "timed out": _set_field(True, "responses", "*", "timed_out"),
}

IN_STAGE: Mapping[str, Kinds] = {
    "hello": HELLO,
    "mapping": _list_mapping_faults(),
    "settings": SETTINGS,
    "msearch": MSEARCH,
    "search": SEARCH,
    "counts": COUNTS,
    "bulk": BULK,
}
"""Right but for one field, by the stage of the request."""

PLAUSIBLE = frozenset(
    (
        "_score: a number",
        "_score: negative",
        "_score: enormous",
        "document_id: escapes",
        "ordinal: negative",
        "ordinal: enormous",
        "text: shorter",
        "metadata: an object",
        "no metadata",
    )
)
"""Kinds that another index might hold: nobody can know that they are not the right answer."""
