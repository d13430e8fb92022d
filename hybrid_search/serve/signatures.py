"""The parameters of a Python function as JSON Schemas, with its defaults and its own words.

Type, limits and words of a parameter come from the table of a query's parameters, and of any other
from the signature and the docstring, so that nothing is written a second time.
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

from hybrid_search.parameters import MAX_PHRASE, MAX_PHRASES, Parameter, read_table
from hybrid_search.search.query import PARAMETERS, SpanOptions
from hybrid_search.search.quote import QuoteOptions

Schema = dict[str, Any]

KNOWN = {**read_table(SpanOptions), **read_table(QuoteOptions), **PARAMETERS}

_PHRASE = {"minLength": 1, "maxLength": MAX_PHRASE, "pattern": r"\S"}


@cache
def describe_parameters(function: Callable[..., Any]) -> dict[str, Schema]:
    """Return the schema of each parameter of `function`, without its default if it is required."""
    words = read_descriptions(function, "Args")
    types = get_type_hints(function)
    schemas: dict[str, Schema] = {}
    for item in inspect.signature(function).parameters.values():
        if item.name in ("self", "url"):
            continue
        if parameter := KNOWN.get(item.name):
            if parameter.is_local:
                continue
            name, schema = parameter.public_name, _describe_parameter(parameter)
        else:
            name, kind = item.name, types[item.name]
            is_phrase = name == "phrase"
            schema = _describe_phrase(kind) if is_phrase else TypeAdapter(kind).json_schema()
            schema["description"] = words[item.name]
        if item.default is not inspect.Parameter.empty:
            schema["default"] = item.default
        schemas[name] = schema
    return schemas


def _describe_parameter(parameter: Parameter) -> Schema:
    """Return the schema of a parameter of a query."""
    limits: Schema = {"enum": [*parameter.choices]} if parameter.choices else {}
    if parameter.limits:
        low, high = parameter.limits
        limits = {"minimum": low, **({"maximum": high} if high < math.inf else {})}
    if parameter.longest:
        limits = {"maxLength": parameter.longest}
    schema = limits if parameter.choices else TypeAdapter(parameter.annotation).json_schema()
    if variants := schema.get("anyOf"):
        schema = {"anyOf": [_limit(variant, limits) for variant in variants]}
    elif not parameter.choices:
        schema |= limits
    if parameter.example is not None:
        schema["examples"] = [parameter.example]
    return {**schema, "description": f"{parameter.words} {parameter.further_words}".strip()}


def _limit(variant: Schema, limits: Schema) -> Schema:
    """Return a variant of a type with its limits; those of an array hold for its items."""
    if variant["type"] == "array":
        return {**variant, "items": variant["items"] | limits, "maxItems": MAX_PHRASES}
    return variant if variant["type"] == "null" else {**variant, **limits}


def _describe_phrase(kind: Any) -> Schema:
    single = {"type": "string", **_PHRASE}
    if kind == str | None:
        return {"anyOf": [single, {"type": "null"}]}
    if kind is str:
        return single
    several = {"type": "array", "items": single, "minItems": 1, "maxItems": MAX_PHRASES}
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
