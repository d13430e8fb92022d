"""The passages that the first request of a query proposes, and the few of them that matter.

Both legs propose passages for the span leg: a passage that a graph search has missed among near
duplicates often has a word of the phrase. All come with short codes, from which the cosines of
their best spans are estimated; only those that can be among the best are scored exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.server import passage_codec, short_codes
from hybrid_search.backends.server.short_codes import ShortCodes
from hybrid_search.backends.types import Key, Request
from hybrid_search.text.types import Floats

MARGIN = 0.04
"""How far an estimate may be below that of the last passage which has to be exact.

An estimate is off by .016 (standard deviation, 288 numbers). Of the exact ten best among the
proposals this loses .008; .03 loses .016, and .05 takes ten passages more and loses .007.
"""

FEWEST, MOST = 15, 100
"""Passages that are scored exactly beyond those which have to be, at least and at most."""

LEXICAL_DEPTH = 3
"""Passages of the BM25 leg are scored exactly until they are of this many times as
many documents as the request shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages of both legs.

    Attributes:
        bm25: BM25 scores of the passages of the BM25 leg, best first.
        short_codes: Short codes of all passages of the span leg, None where there are none that
            can be read; empty if only BM25 was asked.
        has_all_matches: Whether no other passage has a word of the phrase.
    """

    bm25: Mapping[Key, float]
    short_codes: Mapping[Key, ShortCodes | None]
    has_all_matches: bool

    @property
    def without_short_codes(self) -> int:
        """Number of passages whose short codes are missing or damaged."""
        return sum(passage is None for passage in self.short_codes.values())


def choose_nearest(proposals: Proposals, request: Request) -> list[Key]:
    """Return the passages that can be among the best of the span leg, by their estimates.

    Passages without short codes are all returned. The first that is left out is further than
    `MARGIN` from the last that has to be exact.
    """
    keys = sorted(proposals.short_codes, key=passage_codec.parse_passage_id)
    readable = _select_readable(proposals, keys, request.vector)
    estimates = short_codes.estimate_best_cosines(request.vector, list(readable.values()))
    order = np.argsort(-estimates, kind="stable")
    ranked = [list(readable)[number] for number in order.tolist()]
    count = _count_nearest(estimates[order], _reach_depth(ranked, request))
    left_out = set(ranked[count:])
    return [key for key in keys if key not in left_out]


def choose_lexical(proposals: Proposals, request: Request) -> dict[Key, float]:
    """Return the passages of the BM25 leg that are scored exactly, with their BM25 scores."""
    keys = list(proposals.bm25)[: request.window]
    count = _reach_depth(keys, request, LEXICAL_DEPTH)
    return {key: proposals.bm25[key] for key in keys[:count]}


def _reach_depth(keys: Sequence[Key], request: Request, times: int = 1) -> int:
    """Return how many of the first keys have to be exact.

    They are of as many documents as the request's depth, multiplied by `times`.
    """
    if request.depth is None:
        return min(request.window, len(keys))
    documents: set[str] = set()
    for count, key in enumerate(keys):
        if len(documents) == times * request.depth:
            return count
        documents.add(passage_codec.parse_passage_id(key)[0])
    return len(keys)


def _select_readable(
    proposals: Proposals, keys: Sequence[Key], query: Floats
) -> dict[Key, ShortCodes]:
    """Return the short codes that can be compared with the query."""
    codes_by_key = ((key, proposals.short_codes[key]) for key in keys)
    return {key: codes for key, codes in codes_by_key if codes is not None and codes.fit(query)}


def _count_nearest(estimates: Floats, depth: int) -> int:
    """Return how many of the descending `estimates` are scored exactly."""
    if len(estimates) <= depth:
        return len(estimates)
    within_margin = int(np.count_nonzero(estimates >= estimates[depth - 1] - MARGIN))
    return min(max(within_margin, depth + FEWEST), depth + MOST)
