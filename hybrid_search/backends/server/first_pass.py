"""How a server's answer ranks the passages that the legs propose, before any is scored here.

OpenSearch scores the best spans of each passage itself, by a script over its token codes. Where no
script may run, passages come with short codes, from which the best cosine is estimated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.server import (
    answers,
    mappings,
    passage_codec,
    request_bodies,
    short_codes,
)
from hybrid_search.backends.server.searcher import Hits
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.server.transport.shape import Shape
from hybrid_search.backends.types import Key, Request
from hybrid_search.errors import ServerError
from hybrid_search.text.types import Floats

UNREADABLE = -2.0
"""What the script returns for token codes that are missing or damaged."""


@dataclass(frozen=True, slots=True)
class BestSpans:
    """What a passage can be ranked by, exact or estimated.

    Attributes:
        cosine: The largest cosine of any of its spans.
        score: The largest sum of cosine and prior.
    """

    cosine: float
    score: float


BestSpansByKey = Mapping[Key, BestSpans | None]
"""The best spans of passages; None where they are unknown."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How many passages are scored exactly beyond those which have to be.

    Attributes:
        margin: How far a score may be below that of the last passage which has to be exact.
        fewest: The fewest further passages, if spans alone decide.
        fewest_fused: The fewest further passages, if BM25 decides, too.
        most: The most further passages.
        beyond_window: How many passages beyond the window may belong into it.
    """

    margin: float
    fewest: int
    fewest_fused: int
    most: int
    beyond_window: int


ESTIMATED = Depth(margin=0.04, fewest=15, fewest_fused=15, most=100, beyond_window=100)
"""For short codes.

An estimate is off by .016 (standard deviation, 288 numbers). Of the exact ten best among the
proposals this loses .008; .03 loses .016, and .05 takes ten passages more and loses .007.
"""

COMPUTED = Depth(margin=1e-4, fewest=5, fewest_fused=20, most=100, beyond_window=0)
"""For scores of the server, which are off by 2e-5.

Where BM25 decides, too, a passage whose words fit better can rise above others of a higher score.
"""


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What is requested of a passage that is proposed, and what it is ranked by.

    Attributes:
        fields: What the searches return of a hit.
        shape: The shape of the answer of a search without scores.
        scored_shape: The shape of the answer of a search by BM25.
        read_spans: Returns the best spans of hits for a unit vector, float32 ``[dimension]``.
        depth: How many passages are scored exactly.
        runs_script: Whether the server scores the best spans by a script.
    """

    fields: Mapping[str, Any]
    shape: Shape[answers.Answer]
    scored_shape: Shape[answers.Answer]
    read_spans: Callable[[Hits, Floats], BestSpansByKey]
    depth: Depth = ESTIMATED
    runs_script: bool = False


def choose_first_pass(
    engine: Engine, request: Request, *, is_wide: bool, allows_scripts: bool
) -> FirstPass:
    """Return the first pass of a request.

    The passages of a wide request come without codes or scores: they are all scored exactly.
    """
    if not request.semantic or is_wide:
        return KEYS_ONLY
    script = mappings.read_script(engine) if allows_scripts else None
    if script is None:
        return SHORT_CODES
    fields = request_bodies.best_span_fields(script, request.vector, request.prior)
    return FirstPass(
        fields,
        answers.BEST_SPANS,
        answers.SCORED_BEST_SPANS,
        _read_computed,
        COMPUTED,
        runs_script=True,
    )


def _read_nothing(hits: Hits, _: Floats) -> BestSpansByKey:
    return {passage_codec.hit_key(hit): None for hit in hits}


def _estimate(hits: Hits, query: Floats) -> BestSpansByKey:
    codes_by_key = {
        passage_codec.hit_key(hit): passage_codec.decode_short_codes(hit) for hit in hits
    }
    readable = {
        key: codes for key, codes in codes_by_key.items() if codes is not None and codes.fit(query)
    }
    estimates = short_codes.estimate_best_cosines(query, list(readable.values()))
    # the probabilities that a prior needs are not among short codes
    best_spans = (BestSpans(estimate, estimate) for estimate in estimates.tolist())
    return {**dict.fromkeys(codes_by_key), **dict(zip(readable, best_spans, strict=True))}


def _read_computed(hits: Hits, _: Floats) -> BestSpansByKey:
    numbers = ((passage_codec.hit_key(hit), hit["fields"]["best_spans"]) for hit in hits)
    return {
        key: None if cosine == UNREADABLE else BestSpans(cosine, score)
        for key, (cosine, score) in numbers
    }


KEYS_ONLY = FirstPass(request_bodies.KEYS, answers.KEYS, answers.SCORED_KEYS, _read_nothing)
SHORT_CODES = FirstPass(
    request_bodies.SHORT_CODES,
    answers.SHORT_CODES,
    answers.SCORED_SHORT_CODES,
    _estimate,
)


def refuses_scripts(error: ServerError) -> bool:
    """Return whether a server has answered that it runs no such script."""
    return error.status == 400 and "script" in str(error)
