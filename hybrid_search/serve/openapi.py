"""The description of the service in OpenAPI 3.1, made from the functions that it calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import hybrid_search
from hybrid_search import api
from hybrid_search.client import Client
from hybrid_search.parameters import check_choice
from hybrid_search.search.document_view import DocumentView, PassageScores
from hybrid_search.search.hit import Hit, Span, TurnPlace
from hybrid_search.search.result import LIKELY
from hybrid_search.serve.judging import BODY
from hybrid_search.serve.mining import JSON_LINES_TYPE
from hybrid_search.serve.problems import PROBLEM_TYPE
from hybrid_search.serve.signatures import (
    Schema,
    describe_class,
    describe_parameters,
    read_descriptions,
)
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topic_file import describe_topic

EXAMPLE_DOCUMENT = "shop-001"
"""The id of a call in the bundled sample."""

PROBLEMS = {
    400: "The request is malformed.",
    401: "The token is missing or wrong.",
    404: "There is no such index or document.",
    408: "The body did not arrive in time.",
    409: "The index was written with another model.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    421: "The Host is not one that this service answers to.",
    422: "A parameter has a value that is not allowed.",
    429: "Too many calls are being answered; Retry-After says when to ask again.",
    500: "The service cannot answer.",
    502: "The store of the indexes did not answer as it should.",
    503: "The answer took too long, or the store is away; Retry-After says when to ask again.",
}
BODY_PROBLEMS = (400, 408, 413, 415)
READ_PROBLEMS = (400, 401, 404, 409, 421, 422, 429, 500, 502, 503)

TOPIC_ATTRIBUTES = {"not": "not_phrases", "speaker": "speakers"}
"""The attribute of a `Topic` that a key is explained by, where their names differ."""

TEXTS: Schema = {
    "type": "boolean",
    "default": False,
    "description": "Add the text and the turns of each hit's best passage, and where it begins.",
}


@cache
def build_description() -> dict[str, Any]:
    """Return the whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hybrid-search",
            "version": hybrid_search.__version__,
            "summary": "Search calls and documents for a phrase, down to the span.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"token": []}],
        "paths": {
            "/v1/query": {"post": _describe_query()},
            "/v1/best-spans": {"post": _describe_best_spans()},
            "/v1/mine": {"post": _describe_mining()},
            "/v1/documents/{id}": {"get": _describe_document()},
            "/v1/indexes": {"get": _describe_indexes()},
            "/v1/judgments": {"get": _describe_judgments(), "post": _describe_judging()},
            "/healthz": {"get": _describe_health()},
            "/metrics": {"get": _describe_metrics()},
        },
        "components": {
            "schemas": _describe_schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


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
    topic = {**_describe_object(list_topic_keys()), "required": ["name", "phrases"]}
    topics = {
        "type": "array",
        "items": topic,
        "minItems": 1,
        "description": read_descriptions(Client.mine, "Args")["topics"],
    }
    return {"topics": topics, "index": list_query_parameters()["index"]}


def _describe_call(
    name: str, summary: str, answer: Schema, problems: tuple[int, ...] = READ_PROBLEMS, **more: Any
) -> Schema:
    """Return the description of a call; the `answer` is that of status 200."""
    problem = {"content": {PROBLEM_TYPE: {"schema": _refer("Problem")}}}
    responses = {str(status): {"description": PROBLEMS[status], **problem} for status in problems}
    calls = {"operationId": name, "summary": summary, "responses": {"200": answer, **responses}}
    return {**calls, **more}


def _describe_query() -> Schema:
    example = {"phrase": "refund request", "index": "calls", "alpha": 0.5, "size": 3}
    body = _describe_body(list_query_parameters(), ["phrase"], example)
    return _describe_call(
        "query",
        "Find a phrase, or the best of several, in an index.",
        _describe_answer(_refer("Result")),
        (*BODY_PROBLEMS, *READ_PROBLEMS),
        requestBody=body,
    )


def _describe_best_spans() -> Schema:
    example = {"phrase": "refund request", "text": "I bought it here. I want my money back."}
    body = _describe_body(describe_parameters(api.best_spans), ["phrase", "text"], example)
    answer = _describe_object({"spans": {"type": "array", "items": _refer("Span")}})
    return _describe_call(
        "bestSpans",
        "Find the best spans of one text; no index is used.",
        _describe_answer(answer),
        (*BODY_PROBLEMS, *READ_PROBLEMS),
        requestBody=body,
    )


def _describe_mining() -> Schema:
    topic = {"name": "refund", "phrases": ["put the money back on my card"]}
    body = _describe_body(
        list_mining_parameters(), ["topics"], {"topics": [topic], "index": "calls"}
    )
    answer = {
        "description": "A match a line, in the order of the documents. If the search fails half-way"
        " the last line is a Problem.",
        "content": {JSON_LINES_TYPE: {"schema": _refer("Match")}},
    }
    return _describe_call(
        "mine",
        "Find the mentions of some topics in an index.",
        answer,
        (*BODY_PROBLEMS, *READ_PROBLEMS),
        requestBody=body,
    )


def _describe_document() -> Schema:
    path = {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": EXAMPLE_DOCUMENT,
        "description": "The id of the document, as a hit has it.",
    }
    return _describe_call(
        "openDocument",
        "Read a whole document, with the scores of its words under a phrase.",
        _describe_answer(_refer("DocumentView")),
        parameters=[path, *map(_describe_parameter, list_document_parameters().items())],
    )


def _describe_parameter(item: tuple[str, Schema]) -> Schema:
    """Return a parameter of a query string, where leaving one out is its null."""
    name, schema = item
    description = schema["description"]
    schema = {key: value for key, value in schema.items() if key != "description"}
    variants = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
    if variants:
        (schema,) = variants
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _describe_indexes() -> Schema:
    answer = _describe_object(
        {"indexes": {"type": "array", "items": _refer("Index")}, "judgments": {"type": "boolean"}}
    )
    return _describe_call(
        "indexes",
        "List the indexes with their numbers, fields and models.",
        _describe_answer(answer),
        (400, 401, 421, 429, 500, 502, 503),
    )


def _describe_judgments() -> Schema:
    answer = _describe_object({"judgments": {"type": "array", "items": _refer("Judgment")}})
    return _describe_call(
        "judgments",
        "List what people said of spans; 404 unless the service takes judgments.",
        _describe_answer(answer),
    )


def _describe_judging() -> Schema:
    example = {
        "phrase": "I want my money back",
        "id": EXAMPLE_DOCUMENT,
        "start": 673,
        "end": 725,
        "text": "Could you just put the money back on my card instead",
        "answer": "yes",
    }
    return _describe_call(
        "judge",
        "Say of a span whether it is what the phrase means.",
        _describe_answer(_refer("Judgment")),
        (*BODY_PROBLEMS, *READ_PROBLEMS),
        requestBody=_describe_content(BODY.json_schema(), example),
    )


def _describe_health() -> Schema:
    answer = _describe_object({"status": {"const": "ok"}, "version": {"type": "string"}})
    return _describe_call(
        "health",
        "Tell that the service runs.",
        _describe_answer(answer),
        (400, 421),
        security=[],
    )


def _describe_metrics() -> Schema:
    answer = {
        "description": "The numbers.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    summary = "List requests by route and status and their seconds, as Prometheus reads them."
    return _describe_call("metrics", summary, answer, (400, 401, 421))


def _describe_body(properties: dict[str, Schema], required: list[str], example: Any) -> Schema:
    return _describe_content({**_describe_object(properties), "required": required}, example)


def _describe_content(schema: Schema, example: Any) -> Schema:
    return {
        "required": True,
        "content": {"application/json": {"schema": schema, "example": example}},
    }


def _describe_object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _describe_answer(schema: Schema) -> Schema:
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def _refer(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _describe_schemas() -> dict[str, Schema]:
    number, text, anything = {"type": "integer"}, {"type": "string"}, {"type": "object"}
    facet = {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}
    result = _describe_object(
        {
            "hits": {"type": "array", "items": _refer("Hit")},
            "total": number,
            "likely": {
                "type": ["integer", "null"],
                "description": f"How many of these hits have a probability of at least {LIKELY}: "
                "0 if nothing likely was found, null if probabilities are not known.",
            },
            "plan": anything,
            "facets": {"type": "object", "additionalProperties": facet},
        }
    )
    result["required"].remove("facets")
    index: dict[str, Schema] = {
        "name": text,
        "documents": number,
        "passages": number,
        "spans": number,
        "bytes": {"type": ["integer", "null"]},
        "written_at": {"type": ["string", "null"], "format": "date-time"},
        "fields": {"type": "object", "additionalProperties": text},
        "model": text,
        "dimension": number,
        "precision": text,
        "policy": text,
    }
    problem = {"type": text, "title": text, "status": number, "detail": text, "error": text}
    described = {"Hit": Hit, "Span": Span, "TurnPlace": TurnPlace, "PassageScores": PassageScores}
    optional = ("phrase", "text", "start", "turns", "explanation", "highlights")
    omitted = {
        "Hit": optional,
        "Span": ("turn_metadata", "probability"),
        "TurnPlace": ("turn_metadata",),
    }
    return {
        "Result": result,
        **{name: describe_class(kind, omitted.get(name, ())) for name, kind in described.items()},
        "DocumentView": describe_class(DocumentView),
        "Judgment": describe_class(Judgment),
        "Match": describe_class(Match),
        "Index": {**_describe_object(index), "required": ["name"]},
        "Problem": {**_describe_object(problem), "required": ["type", "title", "status", "detail"]},
    }
