"""The parameters of a Python function as JSON Schemas, with its defaults and its own words.

Types come from the signature, the limits from `hybrid_search.search`, and the descriptions from the
docstring, so that nothing about a parameter is written a second time.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from hybrid_search.search import parameters
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.query import CHOICES, RANGES, QueryOptions

Schema = dict[str, Any]

_PHRASE = {"minLength": 1, "maxLength": parameters.MAX_PHRASE, "pattern": r"\S"}

LIMITS: dict[str, Schema] = {
    **{
        name: {"minimum": low, **({"maximum": high} if high < math.inf else {})}
        for name, (low, high) in {**RANGES, "k": (1, math.inf)}.items()
    },
    **{name: {"enum": [*choices]} for name, choices in CHOICES.items()},
    "fusion": {"enum": [*FUSIONS]},
    "context": {"maxLength": parameters.MAX_CONTEXT},
}
"""What is allowed of a parameter beyond its type."""


def describe_parameters(function: Callable[..., Any]) -> dict[str, Schema]:
    """Return the schema of each parameter of `function`, without its default if it is required."""
    words = read_descriptions(function, "Args")
    types = {**get_type_hints(function), **get_type_hints(QueryOptions)}
    schemas: dict[str, Schema] = {}
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name.rstrip("_")
        if name in ("self", "url"):
            continue
        schema = _describe_type(name, types[parameter.name])
        if parameter.default is not inspect.Parameter.empty:
            schema["default"] = parameter.default
        schemas[name] = {**schema, "description": words.get(parameter.name, words.get(name, ""))}
    return schemas


def _describe_type(name: str, kind: Any) -> Schema:
    if name == "phrase":
        return _describe_phrase(kind)
    schema = TypeAdapter(kind).json_schema()
    if name == "facets":
        schema = {"anyOf": [schema, {"type": "string"}, {"type": "null"}]}
    limits = LIMITS.get(name, {})
    if schema.get("type") == "boolean":
        return schema
    if "enum" in limits:
        return {**limits}
    variants = schema.get("anyOf", [])
    if variants and limits:
        return {"anyOf": [_limit(variant, limits) for variant in variants]}
    return {**schema, **limits}


def _limit(variant: Schema, limits: Schema) -> Schema:
    return variant if variant.get("type") == "null" else {**variant, **limits}


def _describe_phrase(kind: Any) -> Schema:
    single = {"type": "string", **_PHRASE}
    if kind == str | None:
        return {"anyOf": [single, {"type": "null"}]}
    if kind is str:
        return single
    several = {
        "type": "array",
        "items": single,
        "minItems": 1,
        "maxItems": parameters.MAX_PHRASES,
    }
    return {"anyOf": [single, several]}


_ENTRY = re.compile(r"^(\w+): (.*(?:\n {4}.*)*)", flags=re.MULTILINE)


@cache
def read_descriptions(documented: Any, section: str) -> dict[str, str]:
    """Return what the docstring of a function or class says of each name in a section."""
    text = inspect.getdoc(documented) or ""
    match = re.search(rf"^{section}:\n((?: {{4}}.*\n?|\n)*)", text, flags=re.MULTILINE)
    entries = _ENTRY.findall(inspect.cleandoc(match[1])) if match else []
    return {name: " ".join(words.split()).replace("``", "`") for name, words in entries}


def describe_class(kind: Any, omitted: Sequence[str] = ()) -> Schema:
    """Return the schema of a dataclass as its `to_dict` writes it.

    `omitted` are fields that may be missing. Fields that are dataclasses refer to the schema of
    their name.
    """
    words = read_descriptions(kind, "Attributes")
    hints = get_type_hints(kind)
    properties: dict[str, Schema] = {}
    for item in fields(kind):
        schema = TypeAdapter(hints[item.name]).json_schema(
            ref_template="#/components/schemas/{model}", mode="serialization"
        )
        schema.pop("$defs", None)
        properties[item.name] = {**schema, "description": words.get(item.name, "")}
    return {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").partition("\n")[0],
        "properties": properties,
        "required": [name for name in properties if name not in omitted],
        "additionalProperties": False,
    }
