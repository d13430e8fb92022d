"""The description of the service in OpenAPI 3.1: `openapi.yaml`, and schemas made from Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import hybrid_search
from hybrid_search import api
from hybrid_search.client import Client
from hybrid_search.parameters import check_choice
from hybrid_search.search.document_view import DocumentView, PassageScores
from hybrid_search.search.hit import Hit, Span, TurnPlace
from hybrid_search.serve.judging import BODY
from hybrid_search.serve.signatures import (
    Schema,
    describe_class,
    describe_parameters,
    read_descriptions,
)
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic_file import describe_topic
from hybrid_search.topics.topics import Topic

FILE = Path(__file__).with_name("openapi.yaml")

TOPIC_ATTRIBUTES = {"not": "not_phrases", "speaker": "speakers"}
"""The attribute of a `Topic` that a key is explained by, where their names differ."""

TEXTS: Schema = {
    "type": "boolean",
    "default": False,
    "description": "Add the text and the turns of each hit's best passage, and where it begins.",
}

OMITTED: Mapping[type, tuple[str, ...]] = {
    Hit: ("phrase", "text", "start", "turns", "explanation", "highlights"),
    Span: ("turn_metadata", "probability"),
    TurnPlace: ("turn_metadata",),
}
"""The fields that an answer may lack."""


@cache
def build_description() -> dict[str, Any]:
    """Return the whole description."""
    description: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    del description["x-problems"]  # the sets of responses, which are in their places now
    description["info"]["version"] = hybrid_search.__version__
    parameters = description["paths"]["/v1/documents/{id}"]["get"]["parameters"]
    parameters += map(_describe_parameter, list_document_parameters().items())
    answers = (Hit, Span, TurnPlace, PassageScores, DocumentView, Judgment, Match)
    description["components"]["schemas"] |= {
        "Query": _describe_object(list_query_parameters(), "phrase"),
        "BestSpans": _describe_object(describe_parameters(api.best_spans), "phrase", "text"),
        "Mining": _describe_object(list_mining_parameters(), "topics"),
        "Judging": BODY.json_schema(),
        **{kind.__name__: describe_class(kind, OMITTED.get(kind, ())) for kind in answers},
    }
    return description


@cache
def list_query_parameters() -> dict[str, Schema]:
    """Return the schemas of what `/v1/query` takes."""
    return {**describe_parameters(api.query), "texts": TEXTS}


def take_texts(values: dict[str, Any]) -> bool:
    """Take the parameter `texts` of `/v1/query` out of the values; UsageError if it is no bool."""
    texts: bool = values.pop("texts", False)
    check_choice("texts", texts, (False, True))
    return texts


def name_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters by the names that Python gives them: ``not`` is a keyword."""
    return {"not_" if name == "not" else name: value for name, value in values.items()}


@cache
def list_document_parameters() -> dict[str, Schema]:
    """Return the schemas of what `/v1/documents/{id}` takes beside the id."""
    parameters = describe_parameters(Client.open_document)
    return {name: schema for name, schema in parameters.items() if name != "document_id"}


@cache
def list_topic_keys() -> dict[str, Schema]:
    """Return the schemas of the keys of a topic."""
    words = read_descriptions(Topic, "Attributes")
    return {
        name: {**schema, "description": words[TOPIC_ATTRIBUTES.get(name, name)]}
        for name, schema in describe_topic().items()
    }


@cache
def list_mining_parameters() -> dict[str, Schema]:
    """Return the schemas of what `/v1/mine` takes."""
    topic = _describe_object(list_topic_keys(), "name", "phrases")
    topics = {
        "type": "array",
        "items": topic,
        "minItems": 1,
        "description": read_descriptions(Client.mine, "Args")["topics"],
    }
    return {"topics": topics, "index": list_query_parameters()["index"]}


def _describe_parameter(item: tuple[str, Schema]) -> Schema:
    """Return a parameter of a query string, where leaving one out is its null."""
    name, schema = item
    description = schema["description"]
    schema = {key: value for key, value in schema.items() if key != "description"}
    variants = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
    if variants:
        (schema,) = variants
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _describe_object(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }
