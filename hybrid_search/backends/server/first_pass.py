"""How a server's answer ranks the passages that the legs propose, before any is scored here.

OpenSearch scores the best spans of each passage itself, by a script over its word codes. Where no
script may run, passages come with short codes, from which the best cosine is estimated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.server import (
    mappings,
    passage_codec,
    request_bodies,
    short_codes,
)
from hybrid_search.backends.server.searcher import Hits
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import IndexSpec, Key, Request
from hybrid_search.errors import ServerError

UNREADABLE = -2.0
"""What the script returns for word codes that are missing or damaged."""


@dataclass(frozen=True, slots=True)
class BestSpans:
    """What a passage can be ranked by, exact or estimated.

    Attributes:
        cosine: The largest cosine of any of its spans.
        score: The largest sum of cosine and prior.
        doubt: How much less that may be, as an estimate does not tell for sure which spans count.
    """

    cosine: float
    score: float
    doubt: float = 0.0


BestSpansByKey = Mapping[Key, BestSpans | None]
"""The best spans of passages; None where they are unknown."""


COMPUTED_ERROR = 1e-4
"""How far a score of the server is off: seen were 2e-5."""

ESTIMATED_ERROR = 0.34
"""By how much an estimate from short codes is reckoned to be off, times the root of the dimension.

For 288 numbers that is 0.02, and the standard deviation is 0.016. An error falls with the root of
the dimension: Gao and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error
Bound for Approximate Nearest Neighbor Search", 2024.
"""


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What is requested of a passage that is proposed, and what it is ranked by.

    Attributes:
        fields: What the searches return of a hit.
        read_spans: Returns the best spans of hits for a request.
        error: How far scores are reckoned to be off.
        runs_script: Whether the server scores the best spans by a script.
    """

    fields: Mapping[str, Any]
    read_spans: Callable[[Hits, Request], BestSpansByKey]
    error: float = 0.0
    runs_script: bool = False


def choose_first_pass(
    engine: Engine, request: Request, spec: IndexSpec, *, is_wide: bool, allows_scripts: bool
) -> FirstPass:
    """Return the first pass of a request to an index of this spec.

    The passages of a wide request come without codes or scores: they are all scored exactly.
    """
    if not request.semantic or is_wide:
        return KEYS_ONLY
    script = mappings.read_script(engine) if allows_scripts else None
    if script is None:
        return build_estimating_pass(request)
    fields = request_bodies.best_span_fields(script, request, spec)
    return FirstPass(
        fields,
        _read_computed,
        error=COMPUTED_ERROR,
        runs_script=True,
    )


def build_estimating_pass(request: Request) -> FirstPass:
    """Return the first pass of a request by short codes."""
    return FirstPass(
        request_bodies.add_turns(request_bodies.SHORT_CODES, request),
        _estimate,
        error=ESTIMATED_ERROR / math.sqrt(len(request.vector)),
    )


def _read_nothing(hits: Hits, _: Request) -> BestSpansByKey:
    return {passage_codec.hit_key(hit): None for hit in hits}


def _estimate(hits: Hits, request: Request) -> BestSpansByKey:
    # both legs can propose a passage, which is decoded once
    hits_by_key = {passage_codec.hit_key(hit): hit for hit in hits}
    codes_by_key = {key: passage_codec.decode_short_codes(hit) for key, hit in hits_by_key.items()}
    readable = {
        key: codes
        for key, codes in codes_by_key.items()
        if codes is not None and codes.fit(request.vector, request.prior)
    }
    error = ESTIMATED_ERROR / math.sqrt(len(request.vector))
    estimates = short_codes.estimate_best_spans(
        request.vector, list(readable.values()), request.prior, request.span_filter, 2 * error
    )
    best_spans = map(
        BestSpans,
        estimates.cosines.tolist(),
        estimates.scores.tolist(),
        estimates.doubts.tolist(),
    )
    return {**dict.fromkeys(codes_by_key), **dict(zip(readable, best_spans, strict=True))}


def _read_computed(hits: Hits, _: Request) -> BestSpansByKey:
    numbers = ((passage_codec.hit_key(hit), hit["fields"]["best_spans"]) for hit in hits)
    return {
        key: None if cosine == UNREADABLE else BestSpans(cosine, score)
        for key, (cosine, score) in numbers
    }


KEYS_ONLY = FirstPass(request_bodies.KEYS, _read_nothing)


def refuses_scripts(error: ServerError) -> bool:
    """Return whether a server has answered that it runs no such script."""
    return error.status == 400 and "script" in str(error)
