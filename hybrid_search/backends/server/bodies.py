"""Request bodies: both legs, what completes them, and the filters. Whatever a user gives is a value in them, never syntax."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from hybrid_search.backends.base import FACETS, Request
from hybrid_search.backends.marks import CLOSE, OPEN
from hybrid_search.backends.server.base import Engine
from hybrid_search.backends.server.documents import rounded
from hybrid_search.errors import UsageError
from hybrid_search.filters import ID, Condition, Scalar

EXACT = 2**53
"""From here on a double does not tell neighbouring integers apart; the sub-field ``long`` does."""

SEARCHED = 2500
"""Covering spans that the graph is searched for, of which the best passages become candidates. Transcripts repeat themselves, and a graph is left
too early among near duplicates: docs/servers.md has the recall for fewer (`benchmarks.servers.graph`)."""

LONGEST = 8191
"""UTF-16 units of a metadata value that a server can find: `ignore_above` in the mappings. Of a longer one it keeps the text alone."""

ANY = {"range": {"ordinal": {"gte": 0}}}
"""Every passage. Before OpenSearch 3.5 a filter inside a nested kNN whose clauses are all on doc values of numbers or keywords finds nothing
(opensearch-project/k-NN#2222); with this one among them it finds what it should (tried on 2.19.1)."""

KEYS: dict[str, Any] = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["document_id", "ordinal"],
    "track_total_hits": False,  # nobody asks how many there are, and a server that need not count may skip
}
"""What names a passage, from columns. A hit's ``_id`` lies among the stored fields: to read it is to unpack a block of its neighbours too,
and for 500 hits that took as long as the search (OpenSearch 3.5.0)."""

CODES: dict[str, Any] = {**KEYS, "docvalue_fields": [*KEYS["docvalue_fields"], "tokens"]}
"""The same with the token codes, which are a column too."""

SHOWN = ["start", "text", "layout", "metadata"]


def match(request: Request, size: int, *, among: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
    """BM25 of the phrase: the server's own ``match``, under the conditions; only of the passages `among`, where they are given.
    What is shown of them is their keys, or what `more` says."""
    filters = conditions(request.conditions) + ([ids(among)] if among is not None else [])
    return {"size": size, "query": {"bool": {"must": [{"match": {"text": {"query": request.phrase}}}], "filter": filters}}, **(more or KEYS)}


def nearest(engine: Engine, request: Request, candidates: int, **shown: Any) -> dict[str, Any]:
    """The passages whose covering spans are nearest to the vector, as `shown` says. The conditions hold during the search, not after it."""
    vector = rounded(request.vector)
    filters = within(engine, request)
    searched = max(SEARCHED, candidates)
    if engine == "elasticsearch":
        asked: dict[str, Any] = {"field": "spans.vector", "query_vector": vector, "k": candidates, "num_candidates": searched}
        return {"size": candidates, "knn": {**asked, **({"filter": filters} if filters else {})}, **shown}
    asked = {"vector": vector, "k": searched, **({"filter": {"bool": {"filter": filters}}} if filters else {})}
    return {"size": candidates, "query": {"nested": {"path": "spans", "score_mode": "max", "query": {"knn": {"spans.vector": asked}}}}, **shown}


def within(engine: Engine, request: Request) -> list[dict[str, Any]]:
    """The conditions as filters inside a kNN; none for none."""
    filters = conditions(request.conditions)
    return [ANY, *filters] if filters and engine == "opensearch" else filters


def codes(keys: Sequence[str]) -> dict[str, Any]:
    """The token codes of passages."""
    return {"size": len(keys), "query": ids(keys), **CODES}


def contents(keys: Sequence[str]) -> dict[str, Any]:
    """What is shown of passages."""
    return {"size": len(keys), "query": ids(keys), "_source": SHOWN}


def highlights(request: Request, keys: Sequence[str]) -> dict[str, Any]:
    """The passages' texts, and the same with the matching words marked."""
    marked = {"fields": {"text": {"number_of_fragments": 0, "pre_tags": [OPEN], "post_tags": [CLOSE]}}}
    return match(request, len(keys), among=keys, highlight=marked, _source=["text"])


def facets(request: Request, fields: Sequence[str]) -> dict[str, Any]:
    """Documents by value of each field. Exact up to some thousand documents a value, then within a few percent (a server's ``cardinality``);
    integers from `EXACT` on are counted as the doubles next to them."""
    documents = {"documents": {"cardinality": {"field": "document_id", "precision_threshold": 3000}}}
    terms = {"size": FACETS, "order": [{"documents": "desc"}, {"_key": "asc"}]}
    aggregations = {str(number): {"terms": {"field": f"metadata.{name}", **terms}, "aggs": documents} for number, name in enumerate(fields)}
    return match(request, 0, aggs=aggregations)


def ids(keys: Sequence[str]) -> dict[str, Any]:
    """The passages of these ``_id``s."""
    return {"ids": {"values": list(keys)}}


def conditions(given: Iterable[Condition]) -> list[dict[str, Any]]:
    """A filter for each condition. Raises UsageError for a value that is too long to be found."""
    return [_ranges(each) if each.ranges else _values(each) for each in map(_findable, given)]


def _findable(condition: Condition) -> Condition:
    texts = (each for each in (*condition.values, *(bound for _, bound in condition.ranges)) if isinstance(each, str))
    if any(len(each) > LONGEST // 2 and len(each.encode("utf-16-le")) // 2 > LONGEST for each in texts):
        raise UsageError(f"cannot filter {condition.field!r} by so long a text: servers find values of up to {LONGEST} characters (in UTF-16)")
    return condition


def _field(condition: Condition) -> str:
    return "document_id" if condition.field == ID else f"metadata.{condition.field}"


def _values(condition: Condition) -> dict[str, Any]:
    name = _field(condition)
    plain = [value for value in condition.values if not _large(value)]
    large = [value for value in condition.values if _large(value)]
    if not large:
        return {"terms": {name: plain}}
    return {"bool": {"should": [{"terms": {name: plain}}, {"terms": {f"{name}.long": large}}]}}


def _ranges(condition: Condition) -> dict[str, Any]:
    name = f"{_field(condition)}.long" if any(_large(bound) for _, bound in condition.ranges) else _field(condition)
    return {"range": {name: {operator: _finite(bound) for operator, bound in condition.ranges}}}


def _large(value: Scalar) -> bool:
    return isinstance(value, int) and abs(value) >= EXACT


def _finite(bound: Scalar) -> Scalar:
    """JSON has no infinity; the largest double bounds as much."""
    return max(-sys.float_info.max, min(sys.float_info.max, bound)) if isinstance(bound, float) else bound
