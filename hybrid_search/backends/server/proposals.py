"""The passages that the first request of a query proposes, and the few of them that matter.

Both legs propose passages for the span leg: a passage that a graph search has missed among near
duplicates often has a word of the phrase. All come with the scores of their best spans, or with
what these are estimated from; only those that can be among the best are scored exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.first_pass import BestSpansByKey, Depth
from hybrid_search.backends.types import Key, Request

LEXICAL_DEPTH = 3
"""Passages of the BM25 leg are scored exactly until they are of this many times as
many documents as the request shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages of both legs.

    Attributes:
        bm25: BM25 scores of the passages of the BM25 leg, best first.
        best_spans: Those of each passage of the span leg, None where they are unknown; empty if
            only BM25 was asked.
        has_all_matches: Whether no other passage has a word of the phrase.
    """

    bm25: Mapping[Key, float]
    best_spans: BestSpansByKey
    has_all_matches: bool

    @property
    def unknown(self) -> set[Key]:
        """The passages whose best spans are unknown."""
        return {key for key, best in self.best_spans.items() if best is None}


def choose_nearest(proposals: Proposals, request: Request, depth: Depth) -> list[Key]:
    """Return the passages that can be among the best of the span leg, in the order of their ids.

    Passages whose best spans are unknown are all returned. Of the others only those within the
    window, by their cosines, can be. They are ranked by their scores, and the first that is left
    out is further than the margin of `depth` from the last that has to be exact.
    """
    keys = sorted(proposals.best_spans, key=passage_codec.parse_passage_id)
    best_by_key = {key: best for key in keys if (best := proposals.best_spans[key]) is not None}
    by_cosine = sorted(best_by_key, key=lambda key: -best_by_key[key].cosine)
    within = by_cosine[: request.window + depth.beyond_window]
    ranked = sorted(within, key=lambda key: -best_by_key[key].score)
    scores = [best_by_key[key].score for key in ranked]
    fewest = depth.fewest_fused if request.lexical else depth.fewest
    count = _count_nearest(scores, _reach_depth(ranked, request), depth, fewest)
    chosen = set(ranked[:count])
    return [key for key in keys if key not in best_by_key or key in chosen]


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


def _count_nearest(scores: Sequence[float], required: int, depth: Depth, fewest: int) -> int:
    """Return how many of the descending `scores` are computed exactly."""
    if len(scores) <= required:
        return len(scores)
    least = scores[required - 1] - depth.margin
    within_margin = sum(score >= least for score in scores)
    return min(max(within_margin, required + fewest), required + depth.most)
