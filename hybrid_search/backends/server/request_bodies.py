"""Builds request bodies, in which whatever a user gives is a value, never syntax."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.server.heads import ServerIndex
from hybrid_search.backends.server.passage_codec import CLOSE, OPEN
from hybrid_search.backends.server.reach import Reach, is_wide
from hybrid_search.backends.types import FACETS, Request
from hybrid_search.errors import UsageError
from hybrid_search.text.filters import ID, Condition, Range, Scalar
from hybrid_search.text.stems import UNSEEN, fold_words, select_content_words
from hybrid_search.text.values import Form
from hybrid_search.text.words import MAX_WORD, words

COUNTING = {"size": 0, "track_total_hits": True}
"""Counts passages."""

COUNTS = {
    **COUNTING,
    "aggs": {
        "documents": {"filter": {"term": {"ordinal": 0}}},
        "spans": {"sum": {"field": "span_count"}},
        "written_at": {"max": {"field": "indexed_at"}},
    },
}
"""Counts documents, passages and covering spans, and tells the last of their times."""

T = TypeVar("T")

MAX_EXACT_INTEGER = 2**53
"""From here on doubles cannot represent every integer; the sub-field ``long`` can."""

MAX_VALUE_UNITS = 8191
"""The longest metadata value, in UTF-16 units, that is indexed: `ignore_above` in the mappings."""

KEYS: dict[str, Any] = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["document_id", "ordinal"],
    # no caller needs the total, and a server that need not count may skip passages
    "track_total_hits": False,
}
"""Returns the key of a passage, from columns.

To read the ``_id`` of 500 hits, a stored field, took as long as the search (OpenSearch 3.5.0).
"""

CODES: dict[str, Any] = {**KEYS, "docvalue_fields": [*KEYS["docvalue_fields"], "tokens"]}
"""Returns the key and the word codes, which are a column too."""

BEST_OF_DOCUMENT = {"collapse": {"field": "document_id"}}
"""Returns only the best passage of each document."""

CONTENT_FIELDS = ["start", "text", "layout", "metadata"]


def split_batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield `items` in lists of up to `size`, for one request each."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def choose_code_fields(request: Request) -> dict[str, Any]:
    """Return `CODES`, with the turns of a passage if the request asks for speakers."""
    turns = ["turn_speakers"] if request.speakers else []
    return {**CODES, "docvalue_fields": [*CODES["docvalue_fields"], *turns]}


def choose_hit_fields(request: Request, index: ServerIndex) -> dict[str, Any]:
    """Return what the legs ask of a hit: its codes, unless those of all are too much at once."""
    has_codes = request.semantic and not is_wide(request)
    fields = choose_code_fields(request) if has_codes else KEYS
    version = ["source_version"] if index.attachment else []
    return {**fields, "docvalue_fields": [*fields["docvalue_fields"], *version]}


def match_body(
    request: Request,
    size: int,
    *,
    among: Sequence[str] | None = None,
    documents_before: Sequence[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """Return the BM25 search of the phrase: the server's own ``match``, under the conditions.

    If `among` is given, only those passages can match. With `documents_before`, only the best
    passage of each other document can. `fields` say what is returned of a hit, by default its key.
    """
    filters = _request_filters(request, documents_before)
    if among is not None:
        filters.append(_ids_query(among))
    return {
        "size": size,
        "query": {"bool": {"must": [_phrase_query(request.phrase)], "filter": filters}},
        **(BEST_OF_DOCUMENT if documents_before else {}),
        **(fields or KEYS),
    }


def _phrase_query(phrase: str) -> dict[str, Any]:
    """Return the query of the words of a phrase, cut by the analyzer of each passage's language."""
    has_own_analyzer = {"exists": {"field": "texts"}}
    by_default = {"match": {"text": {"query": phrase}}}
    by_language = {"multi_match": {"query": phrase, "fields": ["texts.*"], "type": "most_fields"}}
    others = {"bool": {"must": [by_default], "must_not": [has_own_analyzer]}}
    return {"bool": {"should": [others, by_language]}}


ODD_TERMS = f".*[{''.join(map(chr, UNSEEN))}\u0300-\u036f\u202f].*|.{{{MAX_WORD + 1},}}"
"""The pattern of terms that a server cuts or folds otherwise than `stems.fold_words` does.

These have invisible characters, separate accents or a narrow blank in them, or are very long.
"""


def quotation_query(quotation: str) -> dict[str, Any]:
    """Return the query of the passages that may contain a quotation, whatever their language.

    They have all its words, by the default analyzer, of which each occurrence is surely one term:
    those of Latin letters and digits without stop words. Passages with `ODD_TERMS` are found, too.
    """
    folded_words = fold_words(quotation, words(quotation))
    content_words = select_content_words(folded_words)
    chosen_words = [word for word in content_words if word.isascii() and word.isalnum()]
    if not chosen_words:
        return {"match_all": {}}
    has_words = {"match": {"text": {"query": " ".join(chosen_words), "operator": "and"}}}
    has_odd_terms = {"regexp": {"text": {"value": ODD_TERMS, "flags": "NONE"}}}
    return {"bool": {"should": [has_words, has_odd_terms]}}


def knn_body(
    engine: str,
    request: Request,
    reach: Reach,
    index: ServerIndex,
    documents_before: Sequence[str],
    *,
    one_each: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    """Return the search for the passages whose covering spans are nearest to the vector.

    The conditions hold during the search, not after it. With `documents_before`, the best passage
    of each other document is returned, with `one_each` that of each document. `fields` say what is
    returned of a hit.
    """
    one_each = one_each or bool(documents_before)
    dialect, searched = find_dialect(engine), max(reach.searched, reach.by_graph)
    knn = dialect.build_knn(
        index.graph.encode_query(request.vector),
        searched if one_each else reach.by_graph,  # many of them have the same document
        searched,
        dialect.extend_filters(_request_filters(request, documents_before), index.filter),
    )
    return {
        "size": reach.by_graph,
        **knn,
        **(BEST_OF_DOCUMENT if one_each else {}),
        **fields,
    }


def codes_body(request: Request, keys: Sequence[str]) -> dict[str, Any]:
    """Return the search for the word codes of passages."""
    return {"size": len(keys), "query": _ids_query(keys), **choose_code_fields(request)}


def contents_body(keys: Sequence[str]) -> dict[str, Any]:
    """Return the search for what is shown of passages."""
    return {"size": len(keys), "query": _ids_query(keys), "_source": CONTENT_FIELDS}


def highlights_body(request: Request, keys: Sequence[str]) -> dict[str, Any]:
    """Return the search for the passages' texts with the matching words marked."""
    marks = {"number_of_fragments": 0, "pre_tags": [OPEN], "post_tags": [CLOSE]}
    highlight = {"fields": {"text": marks, "texts.*": marks}}
    return match_body(request, len(keys), among=keys, highlight=highlight, _source=["text"])


def facets_body(request: Request, fields: Sequence[str]) -> dict[str, Any]:
    """Return the search that counts documents by the values of each field.

    Counts are exact up to some thousand documents a value, then within a few percent. Integers from
    `MAX_EXACT_INTEGER` on are counted as the nearest doubles.
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


def _ids_query(keys: Sequence[str]) -> dict[str, Any]:
    return {"ids": {"values": list(keys)}}


def _request_filters(request: Request, documents_before: Sequence[str]) -> list[dict[str, Any]]:
    """Return a filter for each condition, for the speakers, and against `documents_before`."""
    filters = [_condition_filter(condition) for condition in request.conditions]
    if request.filter:
        filters.append(dict(request.filter))
    if request.speakers:
        filters.append({"terms": {"speakers": list(request.speakers)}})
    if documents_before:
        filters.append({"bool": {"must_not": [{"terms": {"document_id": list(documents_before)}}]}})
    return filters


def _condition_filter(condition: Condition) -> dict[str, Any]:
    bounds = (bound for limits in condition.ranges for _, bound in limits.bounds)
    if any(
        isinstance(value, str) and _is_too_long(value) for value in (*condition.values, *bounds)
    ):
        raise UsageError(
            f"cannot filter {condition.field!r} by a text this long: servers index at most "
            f"{MAX_VALUE_UNITS} characters (in UTF-16)"
        )
    filters = [_range_filter(condition.field, limits) for limits in condition.ranges]
    if condition.values or not filters:
        filters.append(_terms_filter(condition))
    test = filters[0] if len(filters) == 1 else {"bool": {"should": filters}}
    return {"bool": {"must_not": [test]}} if condition.is_negated else test


def _is_too_long(text: str) -> bool:
    # only a text of more than half as many characters can have so many units
    is_candidate = len(text) > MAX_VALUE_UNITS // 2
    return is_candidate and len(text.encode("utf-16-le")) // 2 > MAX_VALUE_UNITS


def _field_name(field: str, form: Form = "written") -> str:
    if form != "written":
        return f"{form}.{field}"
    return "document_id" if field == ID else f"metadata.{field}"


def _terms_filter(condition: Condition) -> dict[str, Any]:
    name = _field_name(condition.field)
    plain = [value for value in condition.values if not _is_large(value)]
    large = [value for value in condition.values if _is_large(value)]
    if not large:
        return {"terms": {name: plain}}
    return {"bool": {"should": [{"terms": {name: plain}}, {"terms": {f"{name}.long": large}}]}}


def _range_filter(field: str, limits: Range) -> dict[str, Any]:
    name = _field_name(field, limits.form)
    if not limits.bounds:
        return {"exists": {"field": name}}
    if limits.form == "written" and any(_is_large(bound) for _, bound in limits.bounds):
        name += ".long"
    return {
        "range": {name: {operator: _clamp_to_finite(bound) for operator, bound in limits.bounds}}
    }


def _is_large(value: Scalar) -> bool:
    return isinstance(value, int) and abs(value) >= MAX_EXACT_INTEGER


def _clamp_to_finite(bound: Scalar) -> Scalar:
    """Replace infinity, which JSON lacks, by the largest double."""
    if not isinstance(bound, float):
        return bound
    return max(-sys.float_info.max, min(sys.float_info.max, bound))
