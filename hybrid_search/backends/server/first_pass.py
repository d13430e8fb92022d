"""How a server's answer ranks the passages that the legs propose, before any is scored here.

OpenSearch computes the cosine of each passage's best span itself, by a script over its token codes.
Where no script may run, passages come with short codes, from which that cosine is estimated here.
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

Cosines = Mapping[Key, float | None]
"""The cosine of each passage's best span, exact or estimated; None where there is none."""

UNREADABLE = -2.0
"""What the script returns for token codes that are missing or damaged."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How many passages are scored exactly beyond those which have to be.

    Attributes:
        margin: How far a cosine may be below that of the last passage which has to be exact.
        fewest: The fewest further passages.
        most: The most further passages.
    """

    margin: float
    fewest: int
    most: int


ESTIMATED = Depth(margin=0.04, fewest=15, most=100)
"""For short codes.

An estimate is off by .016 (standard deviation, 288 numbers). Of the exact ten best among the
proposals this loses .008; .03 loses .016, and .05 takes ten passages more and loses .007.
"""

COMPUTED = Depth(margin=0.06, fewest=20, most=100)
"""For cosines of the server, which are off by 1e-5.

A page is in the order of scores, in which the length of a span counts too, so a passage may rise
above others of a higher cosine. Of the pages that all 100 passages would give this holds .99
(35,269 passages, alpha 1); .04 holds .94.
"""


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What is requested of a passage that is proposed, and what its cosine is read from.

    Attributes:
        fields: What the searches return of a hit.
        shape: The shape of the answer of a search without scores.
        scored_shape: The shape of the answer of a search by BM25.
        read_cosines: Returns the cosines of hits with a unit vector, float32 ``[dimension]``.
        depth: How many passages are scored exactly.
        runs_script: Whether the server computes the cosines by a script.
    """

    fields: Mapping[str, Any]
    shape: Shape[answers.Answer]
    scored_shape: Shape[answers.Answer]
    read_cosines: Callable[[Hits, Floats], Cosines]
    depth: Depth = ESTIMATED
    runs_script: bool = False


def choose_first_pass(
    engine: Engine, request: Request, *, is_wide: bool, allows_scripts: bool
) -> FirstPass:
    """Return the first pass of a request.

    The passages of a wide request come without codes or cosines: they are all scored exactly.
    """
    if not request.semantic or is_wide:
        return KEYS_ONLY
    script = mappings.read_script(engine) if allows_scripts else None
    if script is None:
        return SHORT_CODES
    fields = request_bodies.cosine_fields(script, request.vector)
    return FirstPass(
        fields, answers.COSINES, answers.SCORED_COSINES, _read_cosines, COMPUTED, runs_script=True
    )


def _read_nothing(hits: Hits, _: Floats) -> Cosines:
    return {passage_codec.hit_key(hit): None for hit in hits}


def _estimate_cosines(hits: Hits, query: Floats) -> Cosines:
    codes_by_key = {
        passage_codec.hit_key(hit): passage_codec.decode_short_codes(hit) for hit in hits
    }
    readable = {
        key: codes for key, codes in codes_by_key.items() if codes is not None and codes.fit(query)
    }
    estimates = short_codes.estimate_best_cosines(query, list(readable.values()))
    return dict.fromkeys(codes_by_key) | dict(zip(readable, estimates.tolist(), strict=True))


def _read_cosines(hits: Hits, _: Floats) -> Cosines:
    cosines = ((passage_codec.hit_key(hit), hit["fields"]["cosine"][0]) for hit in hits)
    return {key: None if cosine == UNREADABLE else cosine for key, cosine in cosines}


KEYS_ONLY = FirstPass(request_bodies.KEYS, answers.KEYS, answers.SCORED_KEYS, _read_nothing)
SHORT_CODES = FirstPass(
    request_bodies.SHORT_CODES,
    answers.SHORT_CODES,
    answers.SCORED_SHORT_CODES,
    _estimate_cosines,
)


def refuses_scripts(error: ServerError) -> bool:
    """Return whether a server has answered that it runs no such script."""
    return error.status == 400 and "script" in str(error)
