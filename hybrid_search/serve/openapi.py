"""The description of the service in OpenAPI 3.1: `openapi.yaml`, and schemas made from Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import hybrid_search
from hybrid_search.client import Client
from hybrid_search.search.hit import DocumentView, Hit, PassageScores, Span, TurnPlace
from hybrid_search.search.quote import QuotePlace
from hybrid_search.serve.judging import BODY
from hybrid_search.serve.operations import describe_object, list_operations, list_topic_keys
from hybrid_search.serve.signatures import Schema, describe_class, read_descriptions
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.match import Evidence, Match

FILE = Path(__file__).with_name("openapi.yaml")

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
    answers = (
        *(Hit, Span, TurnPlace, PassageScores, DocumentView),
        *(QuotePlace, Judgment, Match, Evidence),
    )
    description["components"]["schemas"] |= {
        "Query": describe_object(list_operations()["query"].parameters),
        "CheckQuote": describe_object(list_operations()["check_quote"].parameters),
        "BestSpans": describe_object(list_operations()["best_spans"].parameters),
        "Mining": describe_object(list_mining_parameters()),
        "Judging": BODY.json_schema(),
        **{kind.__name__: describe_class(kind, OMITTED.get(kind, ())) for kind in answers},
    }
    return description


@cache
def list_document_parameters() -> dict[str, Schema]:
    """Return the schemas of what `/v1/documents/{id}` takes beside the id."""
    parameters = list_operations()["open_document"].parameters
    return {name: schema for name, schema in parameters.items() if name != "document_id"}


@cache
def list_mining_parameters() -> dict[str, Schema]:
    """Return the schemas of what `/v1/mine` takes."""
    topics = {
        "type": "array",
        "items": describe_object(list_topic_keys()),
        "minItems": 1,
        "description": read_descriptions(Client.mine, "Args")["topics"],
    }
    return {"topics": topics, "index": list_operations()["query"].parameters["index"]}


def _describe_parameter(item: tuple[str, Schema]) -> Schema:
    """Return a parameter of a query string, where leaving one out is its null."""
    name, schema = item
    description = schema["description"]
    schema = {key: value for key, value in schema.items() if key != "description"}
    variants = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
    if variants:
        (schema,) = variants
    return {"name": name, "in": "query", "schema": schema, "description": description}
