"""The passages that the first request of a query proposes, and the few of them that matter.

Both legs propose passages for the span leg: a passage that a graph search has missed among near
duplicates often has a word of the phrase. All come with the cosines of their best spans, or with
what these are estimated from; only those that can be among the best are scored exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.first_pass import Cosines, Depth
from hybrid_search.backends.types import Key, Request

LEXICAL_DEPTH = 3
"""Passages of the BM25 leg are scored exactly until they are of this many times as
many documents as the request shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages of both legs.

    Attributes:
        bm25: BM25 scores of the passages of the BM25 leg, best first.
        cosines: The cosine of the best span of each passage of the span leg, exact or estimated,
            None where it is unknown; empty if only BM25 was asked.
        has_all_matches: Whether no other passage has a word of the phrase.
    """

    bm25: Mapping[Key, float]
    cosines: Cosines
    has_all_matches: bool

    @property
    def without_cosine(self) -> int:
        """Number of passages of which no cosine is known."""
        return sum(cosine is None for cosine in self.cosines.values())


def choose_nearest(proposals: Proposals, request: Request, depth: Depth) -> list[Key]:
    """Return the passages that can be among the best of the span leg, in the order of their ids.

    Passages without a cosine are all returned. The first that is left out is further than the
    margin of `depth` from the last that has to be exact.
    """
    keys = sorted(proposals.cosines, key=passage_codec.parse_passage_id)
    cosine_by_key = {key: cosine for key in keys if (cosine := proposals.cosines[key]) is not None}
    ranked = sorted(cosine_by_key, key=cosine_by_key.__getitem__, reverse=True)
    cosines = [cosine_by_key[key] for key in ranked]
    left_out = set(ranked[_count_nearest(cosines, _reach_depth(ranked, request), depth) :])
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


def _count_nearest(cosines: Sequence[float], required: int, depth: Depth) -> int:
    """Return how many of the descending `cosines` are scored exactly."""
    if len(cosines) <= required:
        return len(cosines)
    least = cosines[required - 1] - depth.margin
    within_margin = sum(cosine >= least for cosine in cosines)
    return min(max(within_margin, required + depth.fewest), required + depth.most)
