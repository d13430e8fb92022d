"""What OpenSearch's script returns of a passage, computed by our own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hybrid_search.backends.server import passage_codec
from hybrid_search.text.codebook import turn
from hybrid_search.text.joined_cosines import span_cosines_by_passage
from hybrid_search.text.span_filter import SpanFilter
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats, WordCodes
from tests.helpers.tiny_encoder import make_prior

Json = dict[str, Any]


def add_best_spans(hit: Json, body: Mapping[str, Any]) -> Json:
    """Return a hit with cosine and score of its best spans, if `body` has our script."""
    if "script_fields" not in body:
        return hit
    params = body["script_fields"]["best_spans"]["script"]["params"]
    best_spans = compute_best_spans(passage_codec.decode_codes(hit), params)
    return {**hit, "fields": {**hit["fields"], "best_spans": best_spans}}


def read_vector(query: Mapping[str, Any]) -> Floats:
    """Return the vector of a query as it was before it was turned."""
    turned: Floats = np.array([query["vector"]], np.float32)
    return np.asarray(turn(turned)[0])


def compute_best_spans(tokens: WordCodes, params: Mapping[str, Any]) -> list[float]:
    """Return the largest cosine and the largest score of any span, -2 for damaged codes."""
    (cosines,) = span_cosines_by_passage(read_vector(params), [tokens])
    if cosines is not None and params.keys() & {"speakers", "not_vectors"}:
        not_vectors = [read_vector(query) for query in params.get("not_vectors", ())]
        span_filter = SpanFilter(tuple(params.get("speakers", ())), not_vectors)
        (cosines,) = span_filter.apply([cosines], [tokens])
    weights = params.get("prior")
    if cosines is None or (weights and tokens.boundaries is None):
        return [-2.0, -2.0]
    scores = cosines
    if weights:
        own = {name: weights[name] for name in ("ends", "inside", "length")}
        prior = SpanPrior(make_prior().boundaries, **own)
        scores = cosines + prior.score_spans(tokens)
    return [float(cosines.max(initial=-1)), float(scores.max(initial=-2))]
