"""Request bodies: both legs, what completes them, and the filters.

Whatever a user gives is a value in them, never syntax.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from hybrid_search.backends.highlight_markers import CLOSE, OPEN
from hybrid_search.backends.server.passage_codec import round_vector
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import FACETS, Request
from hybrid_search.errors import UsageError
from hybrid_search.text.filters import ID, Condition, Scalar

MAX_EXACT_INTEGER = 2**53
"""From here on a double does not tell neighbouring integers apart; the sub-field ``long`` does."""

SEARCHED_SPANS = 2500
"""Covering spans that the graph is searched for, of which the best passages become candidates.
Transcripts repeat themselves, and a graph is left too early among near duplicates: docs/servers.md
has the recall for fewer (`benchmarks.servers.graph`).
"""

MAX_VALUE_UNITS = 8191
"""UTF-16 units of a metadata value that a server can find: `ignore_above` in the mappings. Of a
longer one it keeps the text alone.
"""

EVERY_PASSAGE = {"range": {"ordinal": {"gte": 0}}}
"""Every passage. Before OpenSearch 3.5 a filter inside a nested kNN whose clauses are all on doc
values of numbers or keywords finds nothing (opensearch-project/k-NN#2222); with this one among them
it finds what it should (tried on 2.19.1).
"""

KEYS: dict[str, Any] = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["document_id", "ordinal"],
    # nobody asks how many there are, and a server that need not count may skip
    "track_total_hits": False,
}
"""What names a passage, from columns. A hit's ``_id`` lies among the stored fields: to read it is
to unpack a block of its neighbours too, and for 500 hits that took as long as the search
(OpenSearch
3.5.0).
"""

CODES: dict[str, Any] = {**KEYS, "docvalue_fields": [*KEYS["docvalue_fields"], "tokens"]}
"""The same with the token codes, which are a column too."""

CONTENT_FIELDS = ["start", "text", "layout", "metadata"]


def match_body(
    request: Request, size: int, *, among: Sequence[str] | None = None, **fields: Any
) -> dict[str, Any]:
    """BM25 of the phrase: the server's own ``match``, under the conditions; only of the passages
    `among`, where they are given.

    What is shown of them is their keys, or what `more` says.
    """
    filters = condition_filters(request.conditions) + (
        [ids_query(among)] if among is not None else []
    )
    return {
        "size": size,
        "query": {
            "bool": {"must": [{"match": {"text": {"query": request.phrase}}}], "filter": filters}
        },
        **(fields or KEYS),
    }


def knn_body(engine: Engine, request: Request, candidates: int, **fields: Any) -> dict[str, Any]:
    """The passages whose covering spans are nearest to the vector, as `shown` says.

    The conditions hold during the search, not after it.
    """
    vector = round_vector(request.vector)
    filters = knn_filters(engine, request)
    span_count = max(SEARCHED_SPANS, candidates)
    if engine == "elasticsearch":
        knn: dict[str, Any] = {
            "field": "spans.vector",
            "query_vector": vector,
            "k": candidates,
            "num_candidates": span_count,
        }
        return {
            "size": candidates,
            "knn": {**knn, **({"filter": filters} if filters else {})},
            **fields,
        }
    knn = {
        "vector": vector,
        "k": span_count,
        **({"filter": {"bool": {"filter": filters}}} if filters else {}),
    }
    return {
        "size": candidates,
        "query": {
            "nested": {
                "path": "spans",
                "score_mode": "max",
                "query": {"knn": {"spans.vector": knn}},
            }
        },
        **fields,
    }


def knn_filters(engine: Engine, request: Request) -> list[dict[str, Any]]:
    """The conditions as filters inside a kNN; none for none."""
    filters = condition_filters(request.conditions)
    return [EVERY_PASSAGE, *filters] if filters and engine == "opensearch" else filters


def codes_body(keys: Sequence[str]) -> dict[str, Any]:
    """The token codes of passages."""
    return {"size": len(keys), "query": ids_query(keys), **CODES}


def contents_body(keys: Sequence[str]) -> dict[str, Any]:
    """What is shown of passages."""
    return {"size": len(keys), "query": ids_query(keys), "_source": CONTENT_FIELDS}


def highlights_body(request: Request, keys: Sequence[str]) -> dict[str, Any]:
    """The passages' texts, and the same with the matching words marked."""
    highlight = {
        "fields": {"text": {"number_of_fragments": 0, "pre_tags": [OPEN], "post_tags": [CLOSE]}}
    }
    return match_body(request, len(keys), among=keys, highlight=highlight, _source=["text"])


def facets_body(request: Request, fields: Sequence[str]) -> dict[str, Any]:
    """Documents by value of each field.

    Exact up to some thousand documents a value, then within a few percent (a server's
    ``cardinality``); integers from `EXACT` on are counted as the doubles next to them.
    """
    documents = {
        "documents": {"cardinality": {"field": "document_id", "precision_threshold": 3000}}
    }
    terms = {"size": FACETS, "order": [{"documents": "desc"}, {"_key": "asc"}]}
    aggregations = {
        str(number): {"terms": {"field": f"metadata.{name}", **terms}, "aggs": documents}
        for number, name in enumerate(fields)
    }
    return match_body(request, 0, aggs=aggregations)


def ids_query(keys: Sequence[str]) -> dict[str, Any]:
    """The passages of these ``_id``s."""
    return {"ids": {"values": list(keys)}}


def condition_filters(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """A filter for each condition. Raises UsageError for a value that is too long to be found."""
    return [
        _range_filter(condition) if condition.ranges else _terms_filter(condition)
        for condition in map(_check_findable, conditions)
    ]


def _check_findable(condition: Condition) -> Condition:
    texts = (
        text
        for text in (*condition.values, *(bound for _, bound in condition.ranges))
        if isinstance(text, str)
    )
    if any(
        len(text) > MAX_VALUE_UNITS // 2 and len(text.encode("utf-16-le")) // 2 > MAX_VALUE_UNITS
        for text in texts
    ):
        raise UsageError(
            f"cannot filter {condition.field!r} by so long a text: servers find values of up to {MAX_VALUE_UNITS} characters (in UTF-16)"
        )
    return condition


def _field_name(condition: Condition) -> str:
    return "document_id" if condition.field == ID else f"metadata.{condition.field}"


def _terms_filter(condition: Condition) -> dict[str, Any]:
    name = _field_name(condition)
    plain = [value for value in condition.values if not _is_large(value)]
    large = [value for value in condition.values if _is_large(value)]
    if not large:
        return {"terms": {name: plain}}
    return {"bool": {"should": [{"terms": {name: plain}}, {"terms": {f"{name}.long": large}}]}}


def _range_filter(condition: Condition) -> dict[str, Any]:
    name = (
        f"{_field_name(condition)}.long"
        if any(_is_large(bound) for _, bound in condition.ranges)
        else _field_name(condition)
    )
    return {
        "range": {name: {operator: _clamp_to_finite(bound) for operator, bound in condition.ranges}}
    }


def _is_large(value: Scalar) -> bool:
    return isinstance(value, int) and abs(value) >= MAX_EXACT_INTEGER


def _clamp_to_finite(bound: Scalar) -> Scalar:
    """JSON has no infinity; the largest double bounds as much."""
    return (
        max(-sys.float_info.max, min(sys.float_info.max, bound))
        if isinstance(bound, float)
        else bound
    )
