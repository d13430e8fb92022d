"""Builds the server's own hybrid query, pipeline included, as the body of one ``_search``.

It needs an OpenSearch with the plugin neural-search.

Filters stand on the match leg and inside the nested kNN. ``hybrid.filter`` (3.0) is not used: it
wraps a nested leg in its filter, which leaves fewer than k hits
(opensearch-project/neural-search#1759). ``profile`` is not requested either: with it, scores were
wrong until 3.9 (#1950).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybrid_search.backends.server.hybrid_features import (
    EXPAND,
    EXPLAIN,
    HYBRID,
    INNER_HITS,
    PAGES,
    RRF,
    RRF_WEIGHTS,
    Z_SCORE,
    ServerVersion,
    has,
    require,
)
from hybrid_search.backends.server.hybrid_techniques import (
    choose_combination,
    leg_weights,
    technique_of,
)

Json = dict[str, Any]

EXCLUDED_FIELDS = ("spans", "tokens", "short_codes")
"""Fields that no hit needs; together they are most of a passage."""


def hybrid_body(
    phrase: str,
    vector: Sequence[float],
    *,
    version: ServerVersion,
    alpha: float = 0.5,
    technique: str = "min_max",
    combination: str | None = None,
    size: int = 10,
    offset: int = 0,
    window: int = 100,
    filter: Sequence[Json] = (),
    spans: int = 3,
    explain: bool = False,
    text_field: str = "text",
    path: str = "spans",
) -> Json:
    """Return the body of a request in which the server fuses both legs.

    Before 2.19 a leg is as deep as the size of the request: the body then asks for `window` hits,
    of which the first `size` are the ones wanted.

    Args:
        phrase: The text for BM25.
        vector: The unit vector of the phrase.
        version: The version of the server.
        alpha: The weight of the span leg; the BM25 leg has ``1 - alpha``.
        technique: The server's normalization, or one of our fusions.
        combination: The server's combination; by default the one that goes with `technique`.
        size: The hits wanted.
        offset: The hits to leave out before them.
        window: The passages taken from each leg, at least.
        filter: Filters that hold for both legs.
        spans: The most inner hits of a passage, which say which spans matched (from 3.0 on).
        explain: Whether the server explains its scores. This changes them (see `fuse`).
        text_field: The field with the text.
        path: The nested field with the spans.

    Returns:
        The body, with its search pipeline.

    Raises UsageError if this version lacks a feature; the message names both.
    """
    require(version, HYBRID)
    if offset:
        require(version, PAGES)
    depth = max(window, offset + size)
    inner = spans if has(version, INNER_HITS) else 0
    hybrid: Json = {
        "queries": [
            lexical_leg(phrase, filter, text_field),
            semantic_leg(vector, depth, version, filter, path, inner),
        ]
    }
    body: Json = {
        "size": depth,
        "_source": {"excludes": list(EXCLUDED_FIELDS)},
        "query": {"hybrid": hybrid},
    }
    if has(version, PAGES):
        hybrid["pagination_depth"] = depth
        body |= {"from": offset, "size": size}
    if explain:
        require(version, EXPLAIN)
        body["explain"] = True
    return body | {
        "search_pipeline": pipeline(version, alpha, technique, combination, explain=explain)
    }


def lexical_leg(phrase: str, filter: Sequence[Json] = (), text_field: str = "text") -> Json:
    """Return the BM25 leg. The phrase is data: ``match`` knows no syntax."""
    match = {"match": {text_field: {"query": phrase}}}
    return {"bool": {"must": [match], "filter": list(filter)}} if filter else match


def semantic_leg(
    vector: Sequence[float],
    k: int,
    version: ServerVersion,
    filter: Sequence[Json] = (),
    path: str = "spans",
    inner: int = 0,
) -> Json:
    """Return the span leg: the `k` passages whose best span is nearest to `vector`.

    Each passage comes with up to `inner` of its spans.
    """
    knn: Json = {"vector": [float(value) for value in vector], "k": k}
    if filter:
        knn["filter"] = {"bool": {"filter": list(filter)}}
    if has(version, EXPAND):
        # without it a passage has one inner hit, and the score of the span that the graph happened
        # to reach
        knn["expand_nested_docs"] = True
    nested: Json = {"path": path, "score_mode": "max", "query": {"knn": {f"{path}.vector": knn}}}
    if inner:
        nested["inner_hits"] = {
            "name": path,
            "size": inner,
            "_source": False,
            "fields": [f"{path}.start", f"{path}.end"],
        }
    return {"nested": nested}


def pipeline(
    version: ServerVersion,
    alpha: float,
    technique: str,
    combination: str | None = None,
    *,
    explain: bool = False,
) -> Json:
    """Return the search pipeline of the request, which the cluster need not have stored."""
    name = technique_of(technique)
    combined: Json = {"technique": choose_combination(name, combination)}
    processor = (
        _ranker(version, alpha, combined)
        if name == "rrf"
        else _normalizer(version, alpha, name, combined)
    )
    explained: Json = {"response_processors": [{"hybrid_score_explanation": {}}]} if explain else {}
    return {"phase_results_processors": [processor], **explained}


def _normalizer(version: ServerVersion, alpha: float, name: str, combined: Json) -> Json:
    if name == "z_score":
        require(version, Z_SCORE)
    weighted = combined | {"parameters": {"weights": list(leg_weights(alpha))}}
    return {
        "normalization-processor": {"normalization": {"technique": name}, "combination": weighted}
    }


def _ranker(version: ServerVersion, alpha: float, combined: Json) -> Json:
    require(version, RRF)
    if alpha != 0.5:
        require(version, RRF_WEIGHTS)
    weighted = (
        combined | {"parameters": {"weights": list(leg_weights(alpha))}}
        if has(version, RRF_WEIGHTS)
        else combined
    )
    return {"score-ranker-processor": {"combination": weighted}}
