"""The stages of a query: encode, find, fuse, group, sort, build hits.

A query without options makes three backend calls: `answer_by_head`, which runs it by the spec and
fields of the index, `find` and `fetch_contents`. With several phrases there is a `find` for each.
`sort`, and `facets` over the window, add no calls. `highlight` adds one `find_highlights` for each
phrase that found a hit on the page, and `facets` over all matches add one `count_facets`.

On a server `find` sends one request, and one more for each batch of candidates whose word codes or
BM25 scores did not come with it. tests/search/test_round_trips.py counts the calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Head, IndexSpec, Key, Request, check_spec
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.encoder.truncated import truncate_encoder
from hybrid_search.errors import UsageError
from hybrid_search.observability.traffic import count_traffic
from hybrid_search.search import hit_builder, no_hits, phrase_vector
from hybrid_search.search.calibration import (
    COSINE,
    ROUGH,
    SCORE,
    TUNED,
    Calibration,
    LoadCalibration,
    find_mention_map,
)
from hybrid_search.search.candidates import Retrieved, rank
from hybrid_search.search.contents import (
    check_fields,
    count_facets,
    fetch_contents,
    select_best,
    sort_groups,
)
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.no_hits import explain_no_speaker
from hybrid_search.search.query import Query
from hybrid_search.search.result import Result
from hybrid_search.search.span_search import build_span_filter
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text.filters import compile_where
from hybrid_search.text.languages import FIELD as LANGUAGE

FindTunedMap = Callable[[str, Sequence[str]], Calibration | None]
"""Returns the map fitted to judgments of some phrases, for the fingerprint of a model."""


def search(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    query: Query,
    find_tuned_map: FindTunedMap | None = None,
) -> Result:
    """Return the answer to `query`.

    `encoder` is truncated to the dimension of the index. Without `find_tuned_map` the model's own
    probabilities are used. IndexMissingError, ModelError for an index of another model and
    UsageError for an unknown field propagate.
    """
    started_at = time.perf_counter()
    answer = partial(_search, backend, encoder, load_calibration, query, find_tuned_map)
    with count_traffic() as traffic:
        result = backend.answer_by_head(query.index, answer)
    milliseconds = round((time.perf_counter() - started_at) * 1000, 1)
    return replace(result, plan={**result.plan, **traffic, "milliseconds": milliseconds})


def _search(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    query: Query,
    find_tuned_map: FindTunedMap | None,
    head: Head,
) -> Result:
    """Answer `query` in an index with this head."""
    spec, fields = head
    encoder = match_encoder_to_index(encoder, query.index, spec)
    check_fields(query, fields)
    _check_filter(backend, query)
    requests = build_requests(query, query.phrases, encoder, fields)
    prior = requests[0].prior
    spans_by = SCORE if prior else COSINE
    calibration = load_calibration(spec.precision, spec.dimension, spans_by)
    answer = _score_phrases(backend, requests, calibration, query)
    mention_map, source = _find_mention_map(
        query, spec, load_calibration, find_tuned_map, has_prior=prior is not None
    )
    likely = _select_likely(answer.passages, mention_map, query)
    groups = hit_builder.group_passages(likely, query.group_by)[: query.window]
    if query.min_score is not None:
        groups = [group for group in groups if group[0].score >= query.min_score]
    contents = fetch_contents(backend, query, groups)
    counts = count_facets(backend, query, requests, groups, contents)
    if query.group_field:
        groups = select_best(groups, query.group_field, contents)
    if query.sort:
        groups = sort_groups(groups, query.sort, contents, fields)
    page = groups[query.page]
    builder = hit_builder.HitBuilder(
        backend, encoder, query, contents, calibration, mention_map, is_known=source != ROUGH
    )
    hits = builder.build_hits(page)
    deleted = len(page) - len(hits)  # deleted while the query ran: neither shown nor counted
    warnings = [*answer.warnings, *builder.warnings]
    if not groups:
        by_speaker = query.speaker and not answer.passages
        warnings += (
            by_speaker and explain_no_speaker(backend, query.index, requests[0])
        ) or no_hits.explain_no_hits(backend, query, requests[0], fields)
    if LANGUAGE in fields or Result(hits, len(hits)).likely == 0:
        warnings += no_hits.explain_language(query.phrases, encoder.info)
    plan = {
        **_plan(query, spec, encoder.info.precision),
        "spans_by": spans_by,
        "probabilities": source,
        "candidates": answer.method,
        "passages": len(answer.passages),
        **({"warnings": warnings} if warnings else {}),
    }
    return Result(hits, len(groups) - deleted, plan, counts)


def requests(backend: Backend, encoder: Encoder, query: Query) -> list[tuple[str, dict[str, Any]]]:
    """Return the path and body of each request sent to a server for `query`.

    Raises:
        UsageError: If the index is not on a server.
    """
    spec, fields = backend.read_head(query.index)
    encoder = match_encoder_to_index(encoder, query.index, spec)
    (request,) = build_requests(query, query.phrases[:1], encoder, fields)
    bodies = backend.build_request_bodies(query.index, request)
    if not bodies:
        raise UsageError(
            "there are no requests to print: only an index on a server is searched by requests. "
            "Use --url opensearch+https://..."
        )
    return bodies


def build_requests(
    query: Query, phrases: Sequence[str], encoder: Encoder, fields: Mapping[str, str]
) -> list[Request]:
    """Return one request per phrase of `query`, for an index with these fields."""
    vectors = phrase_vector.query_vectors(encoder, phrases, query.context)
    conditions = compile_where(query.where, fields)
    span_filter = build_span_filter(encoder, query)
    return [
        Request(
            phrase,
            vector,
            query.window,
            conditions,
            lexical=query.alpha < 1,
            semantic=query.alpha > 0,
            prior=span_prior(encoder) if query.spans_by == SCORE else None,
            span_filter=span_filter,
            filter=query.server_filter,
        )
        for phrase, vector in zip(phrases, vectors, strict=True)
    ]


def _check_filter(backend: Backend, query: Query) -> None:
    """Raise UsageError if the store has no query language, and the query has a filter in it."""
    if query.server_filter is not None and not backend.has_query_language:
        raise UsageError(
            "server_filter is a query of a server, and this index is not on one: use where"
        )


def match_encoder_to_index(encoder: Encoder, index: str, spec: IndexSpec) -> Encoder:
    """Return `encoder` truncated to the dimension of the index.

    Raises ModelError if the index was written with another model.
    """
    truncated = (
        truncate_encoder(encoder, spec.dimension)
        if spec.dimension in encoder.info.sizes
        else encoder
    )
    check_spec(index, spec, IndexSpec.from_encoder(truncated.info, spec.policy, spec.codes))
    return truncated


def _score_phrases(
    backend: Backend, requests: Sequence[Request], calibration: Calibration, query: Query
) -> Retrieved:
    """Return the passages of all phrases, fused and best first.

    Each passage counts once, for the phrase that fits it best.
    """
    choice = (query.fusion, query.alpha, calibration)
    best: dict[Key, ScoredPassage] = {}
    answers: list[Retrieved] = []
    for request in requests:
        if query.feedback:
            earlier = rank(backend, query.index, request, *choice)
            request = add_feedback(request, earlier.passages, query.feedback)
        answer = rank(backend, query.index, request, *choice)
        answers.append(answer)
        for passage in answer.passages:
            rival = best.setdefault(passage.stored.key, passage)
            if passage.sort_key <= rival.sort_key:
                best[passage.stored.key] = passage
    return Retrieved(
        sorted(best.values(), key=lambda passage: passage.sort_key),
        answer.method,
        list(dict.fromkeys(warning for answer in answers for warning in answer.warnings)),
    )


def _select_likely(
    scored: Sequence[ScoredPassage], mention_map: Calibration, query: Query
) -> Sequence[ScoredPassage]:
    """Return the passages with a span of at least `min_probability`; all if it is None.

    Passages without spans are left out.
    """
    if query.min_probability is None:
        return scored
    scores = np.array([passage.span_score for passage in scored], dtype=np.float64)
    are_likely = mention_map.span(scores) >= query.min_probability
    return [
        passage
        for passage, is_likely in zip(scored, are_likely.tolist(), strict=True)
        if is_likely and len(passage.cosines)
    ]


def _find_mention_map(
    query: Query,
    spec: IndexSpec,
    load_calibration: LoadCalibration,
    find_tuned_map: FindTunedMap | None,
    *,
    has_prior: bool,
) -> tuple[Calibration, str]:
    """Return the probability map for the phrases of a query, and its origin.

    Judgments are made on spans chosen by score and for phrases without feedback, so a tuned map
    applies only to these.
    """
    if find_tuned_map is not None and query.spans_by == SCORE and not query.feedback:
        tuned_map = find_tuned_map(spec.fingerprint, query.phrases)
        if tuned_map:
            return tuned_map, TUNED
    return find_mention_map(
        load_calibration,
        spec.precision,
        spec.dimension,
        has_prior=has_prior,
        has_feedback=query.feedback > 0,
    )


def _plan(query: Query, spec: IndexSpec, precision: str) -> dict[str, Any]:
    """Return the requested options and the model; options that were not requested are left out."""
    least = query.min_probability
    requested_legs = {"bm25": query.alpha < 1, "spans": query.alpha > 0}
    return {
        "phrase": query.phrases[0] if len(query.phrases) == 1 else list(query.phrases),
        "index": query.index,
        "alpha": query.alpha,
        "fusion": query.fusion,
        "legs": [name for name in requested_legs if requested_legs[name]],
        "window": query.window,
        **({} if least is None else {"min_probability": float(least)}),
        **({"feedback": query.feedback} if query.feedback else {}),
        **({"sort": query.sort} if query.sort else {}),
        **({"speaker": list(query.speaker)} if query.speaker else {}),
        **({"not": list(query.not_)} if query.not_ else {}),
        "model": spec.model,
        "precision": spec.precision,
        **({"query_precision": precision} if precision != spec.precision else {}),
    }
