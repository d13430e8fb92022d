"""Searches both legs of a query in one request, and notices a replaced index in it.

Both propose passages for the span leg: what a graph search misses often has a word of the phrase.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.head_cache import PROBE, HeadCache, IndexChangedError
from hybrid_search.backends.server.heads import ServerIndex
from hybrid_search.backends.server.reach import (
    IndexSize,
    Reach,
    choose_reach,
    reach_by_words,
)
from hybrid_search.backends.server.searcher import Hits, Searcher
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import Key, Request
from hybrid_search.backends.window import choose_window
from hybrid_search.errors import ServerError
from hybrid_search.text.best_passages import BestPassages, best_passages, best_stored_passages

REMEMBERED_SECONDS = 600.0
"""Seconds for which the size of an index is remembered: it only says how far to search."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages that the legs propose.

    `bm25` are the scores of those that have words of the phrase, best first. `hits` are those for
    the span leg, with their word codes unless the request is wide; none if only BM25 was asked.
    With `has_all_matches` no other passage has a word of the phrase.
    """

    bm25: dict[Key, float]
    hits: Mapping[Key, Mapping[str, Any]]
    has_all_matches: bool


class LegSearch:
    """The first request of queries to one cluster. Safe to use from several threads."""

    def __init__(self, server: Server, searcher: Searcher, heads: HeadCache) -> None:
        self._server, self._searcher, self._heads = server, searcher, heads
        self._sizes: dict[str, tuple[IndexSize, float]] = {}  # with monotonic seconds

    def run(self, index: str, request: Request) -> Proposals:
        """Return what both legs propose; check in the same request that the head still holds."""
        # once: another thread may read a new head meanwhile
        head = self._heads.find(index)
        reach = self._choose_reach(head, request)
        searches = build_searches(self._server.engine, request, reach, head)
        hits = self._search(index, head, {**searches, "probe": PROBE})
        self._heads.check(index, hits.pop("probe"))
        before = find_crowded(hits, request, reach)
        further_hits: dict[str, Hits] = {}
        if before:  # a request more for the legs that few documents crowd
            lacking = {leg: request.window - len(documents) for leg, documents in before.items()}
            further = Reach(lacking.get("lexical", 0), lacking.get("semantic", 0), reach.searched)
            searches = build_searches(self._server.engine, request, further, head, before)
            further_hits = self._search(index, head, searches)
        return read_proposals(hits, further_hits, request, reach)

    def build_bodies(self, index: str, request: Request) -> list[dict[str, Any]]:
        """Return the bodies of the searches of the legs."""
        head = self._heads.find(index)
        reach = self._choose_reach(head, request)
        return list(build_searches(self._server.engine, request, reach, head).values())

    def _choose_reach(self, head: ServerIndex, request: Request) -> Reach:
        index = head.alias
        if not request.semantic:
            return reach_by_words(request)
        size, counted_at = self._sizes.get(index, (None, 0.0))
        if size is None or time.monotonic() - counted_at > REMEMBERED_SECONDS:
            answer = self._searcher.search(index, request_bodies.COUNTING)
            size = IndexSize(answer["hits"]["total"]["value"], answer["_shards"]["total"])
            self._sizes[index] = (size, time.monotonic())
        return choose_reach(self._server.engine, request, size)

    def forget(self, index: str) -> None:
        """Forget what is remembered of `index`."""
        self._heads.forget(index)
        self._sizes.pop(index, None)

    def _search(
        self, index: str, head: ServerIndex, searches: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Hits]:
        """Return the hits of each search; those of the legs were built for the index of `head`.

        Raises:
            IndexChangedError: If the vectors of the index are written in another way by now.
            ServerError: If the server refuses a search for another reason.
        """
        try:
            return self._searcher.search_together(head.alias, searches)
        except ServerError as error:
            if error.status == 400 and self._heads.read(index).graph != head.graph:
                raise IndexChangedError(index) from error
            raise


def build_searches(
    engine: str,
    request: Request,
    reach: Reach,
    index: ServerIndex,
    documents_before: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    """Return the bodies of the searches of the legs by name.

    A leg that has `documents_before` is searched for the best passages of others.
    """
    fields = request_bodies.choose_hit_fields(request, index)
    searches = {}
    if reach.by_words and not index.attachment:
        searches["lexical"] = request_bodies.match_body(
            request, reach.by_words, documents_before=documents_before.get("lexical", ()), **fields
        )
    if reach.by_graph:
        searches["semantic"] = request_bodies.knn_body(
            engine, request, reach, index, documents_before.get("semantic", ()), **fields
        )
    return searches


def find_crowded(
    hits_by_leg: Mapping[str, Hits], request: Request, reach: Reach
) -> dict[str, list[str]]:
    """Return the documents of each leg that has fewer than its window, and has not found all."""
    matches, nearest = hits_by_leg.get("lexical", []), hits_by_leg.get("semantic", [])
    full = {}
    if request.lexical and len(matches) == reach.by_words:
        full["lexical"] = matches
    if request.semantic and len(nearest) == reach.by_graph:
        full["semantic"] = [*nearest, *matches]
    documents = {
        leg: sorted({hit["fields"]["document_id"][0] for hit in hits}) for leg, hits in full.items()
    }
    return {leg: ids for leg, ids in documents.items() if len(ids) < request.window}


def read_proposals(
    hits_by_leg: Mapping[str, Hits],
    further_hits_by_leg: Mapping[str, Hits],
    request: Request,
    reach: Reach,
) -> Proposals:
    """Return the passages of the legs, which are the best and then those of further documents."""
    matches = hits_by_leg.get("lexical", [])
    has_all_matches = len(matches) < reach.by_words
    matches = [*matches, *further_hits_by_leg.get("lexical", [])]
    nearest = [*hits_by_leg.get("semantic", []), *further_hits_by_leg.get("semantic", [])]
    proposing = [*nearest, *matches] if request.semantic else []
    hits = {passage_codec.hit_key(hit): hit for hit in proposing}
    return Proposals(read_scores(matches), hits, has_all_matches)


def read_scores(hits: Hits) -> dict[Key, float]:
    """Return the scores of the hits of a search, by key."""
    return {passage_codec.hit_key(hit): hit["_score"] for hit in hits}


def score_spans(
    request: Request, hits: Mapping[Key, Mapping[str, Any]], lexical: Collection[Key]
) -> BestPassages:
    """Return the best of `hits` by all their spans, those of the BM25 leg, and the damaged ones."""
    choose = partial(cut_window, window=request.window)
    # of passages of equal scores the first id comes first, and not the first in the graph
    keys = sorted(hits, key=passage_codec.parse_passage_id)
    if request.span_filter:
        codes = {key: passage_codec.decode_codes(hits[key]) for key in keys}
        return best_passages(request.vector, codes, choose, request.span_filter, lexical)
    stored = {key: passage_codec.read_stored_codes(hits[key]) for key in keys}
    return best_stored_passages(request.vector, stored, choose, lexical)


def cut_window(ranked: Sequence[Key], window: int) -> list[Key]:
    """Return the passages of `ranked`, best first, that are within the window of a leg."""
    documents = (passage_codec.parse_passage_id(key)[0] for key in ranked)
    return [ranked[position] for position in choose_window(documents, window)]
