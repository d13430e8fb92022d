"""A query, from phrase to hits: encode -> candidates -> complete -> fuse -> group -> sort -> show."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.index_head import Head, answer_by_head
from hybrid_search.backends.types import IndexSpec, Key, Request, check_spec
from hybrid_search.encoder.base import Encoder
from hybrid_search.encoder.truncated import truncate_encoder
from hybrid_search.search import facets, hit_builder
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import ScoredPassage, fuse, retrieve
from hybrid_search.search.opensearch import ranking
from hybrid_search.search.query import Query
from hybrid_search.search.result import Result


def search(
    backend: Backend,
    encoder: Encoder,
    load_calibration: Callable[[str, int], Calibration],
    query: Query,
) -> Result:
    """Answer `query`; `calibrated` gives the calibration for passages of a precision and a
    dimension.

    Raises IndexMissingError, ModelError where the index is of another model, UsageError for an
    unknown field.
    """
    started_at = time.perf_counter()
    result = answer_by_head(
        backend, query.index, partial(_search, backend, encoder, load_calibration, query)
    )
    milliseconds = round((time.perf_counter() - started_at) * 1000, 1)
    return replace(result, plan={**result.plan, "milliseconds": milliseconds})


def _search(
    backend: Backend,
    encoder: Encoder,
    load_calibration: Callable[[str, int], Calibration],
    query: Query,
    head: Head,
) -> Result:
    """Answer `query` in an index with this head."""
    spec, fields = head
    encoder = match_encoder_to_index(encoder, query.index, spec)
    facets.check(query.sort, query.facets, fields)
    requests = [query.request(text, encoder, fields) for text in query.phrases]
    calibration = load_calibration(spec.precision, spec.dimension)
    scored, plan = _score_phrases(backend, requests, calibration, query)
    groups = [
        group
        for group in hit_builder.group_passages(scored, query.group_by)
        if query.min_score is None or group[0].score >= query.min_score
    ]
    if query.sort:
        groups = facets.sort_groups(backend, query.index, groups, query.sort)
    explainer = (
        hit_builder.ScoreExplainer(
            query.compat or query.fusion, query.alpha, query.window, calibration
        )
        if query.explain
        else None
    )
    builder = hit_builder.HitBuilder(
        backend, encoder, query.index, query.spans, query.refine, query.highlight, explainer
    )
    page = groups[query.offset : query.offset + query.size]
    page_hits = builder.build_hits(page)
    total = len(groups) - (
        len(page) - len(page_hits)
    )  # what was deleted while the query ran is neither shown nor counted
    facet_counts = (
        facets.count_facets(backend, query.index, requests, groups, query.facets, query.facets_over)
        if query.facets
        else None
    )
    full_plan = {
        **_plan(query, spec, encoder.info.precision),
        **plan,
    }
    return Result(page_hits, total, full_plan, facet_counts)


def requests(backend: Backend, encoder: Encoder, query: Query) -> list[tuple[str, dict[str, Any]]]:
    """Path and body of what a server is asked for `query`.

    Raises UsageError where there is no server.
    """
    spec, fields = backend.read_head(query.index)
    encoder = match_encoder_to_index(encoder, query.index, spec)
    request = query.request(query.phrases[0], encoder, fields)
    return backend.build_request_bodies(
        query.index,
        request,
        query.alpha,
        ranking.technique(query.compat, query.fusion),
        query.size,
        query.offset,
    )


def match_encoder_to_index(encoder: Encoder, index: str, spec: IndexSpec) -> Encoder:
    """`encoder` with vectors of the size that the index has.

    Raises ModelError where it is not the index's model.
    """
    truncated = (
        truncate_encoder(encoder, spec.dimension)
        if spec.dimension in encoder.info.sizes
        else encoder
    )
    check_spec(index, spec, IndexSpec.from_encoder(truncated.info, spec.policy))
    return truncated


def _score_phrases(
    backend: Backend, requests: Sequence[Request], calibration: Calibration, query: Query
) -> tuple[list[ScoredPassage], dict[str, Any]]:
    """The passages of all phrases, each by the phrase that it fits best, best first; and what was
    done for them.
    """
    best: dict[Key, ScoredPassage] = {}
    plan: dict[str, Any] = {}
    for request in requests:
        if query.compat:
            scored, plan = ranking.score_as_server(
                backend, query.index, request, query.alpha, query.fusion
            )
        else:
            passages, plan["candidates"] = retrieve(backend, query.index, request)
            scored = fuse(passages, request, query.fusion, query.alpha, calibration)
        for passage in scored:
            current_best = best.get(passage.stored.key)
            best[passage.stored.key] = (
                passage
                if current_best is None or passage.sort_key < current_best.sort_key
                else current_best
            )
    return sorted(best.values(), key=lambda passage: passage.sort_key), {
        **plan,
        "passages": len(best),
    }


def _plan(query: Query, spec: IndexSpec, precision: str) -> dict[str, Any]:
    return {
        "phrase": query.phrases[0] if len(query.phrases) == 1 else list(query.phrases),
        "index": query.index,
        "alpha": query.alpha,
        "fusion": query.fusion,
        **({"compat": query.compat} if query.compat else {}),
        "legs": [
            name
            for name, active in (("bm25", query.alpha < 1), ("spans", query.alpha > 0))
            if active or query.compat
        ],
        "window": query.window,
        **({"sort": query.sort} if query.sort else {}),
        "model": spec.model,
        "precision": spec.precision,
        **({"query_precision": precision} if precision != spec.precision else {}),
    }
