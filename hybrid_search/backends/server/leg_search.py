"""Searches both legs of a query in one request, and notices a replaced index in it.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from hybrid_search.backends.index_head import IndexChangedError
from hybrid_search.backends.server import answers, passage_codec, request_bodies
from hybrid_search.backends.server.aliases import ServerIndex
from hybrid_search.backends.server.first_pass import (
    KEYS_ONLY,
    FirstPass,
    choose_first_pass,
    refuses_scripts,
)
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.head_cache import PROBE, HeadCache
from hybrid_search.backends.server.index_size import SizeCache
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.reach import Reach, choose_reach, reach_by_words
from hybrid_search.backends.server.searcher import Hits, Searcher
from hybrid_search.backends.server.transport.base import Engine, Server
from hybrid_search.backends.types import Key, Request
from hybrid_search.errors import ServerError

_log = logging.getLogger(__name__)


class LegSearch:
    """The first request of queries to one cluster. Safe to use from several threads.

    A server that runs no scripts is remembered, and searched without one from then on.
    """

    def __init__(
        self, server: Server, searcher: Searcher, heads: HeadCache, sizes: SizeCache
    ) -> None:
        self._server, self._searcher = server, searcher
        self._heads, self._sizes = heads, sizes
        self._allows_scripts = True

    def run(self, index: str, request: Request) -> tuple[FirstPass, Proposals]:
        """Return what both legs propose, and how that was ranked.

        Raises IndexChangedError if the index was replaced since its head was remembered.

        Raises:
            ServerError: If the server refuses the searches, and not because of the script.
        """
        first_pass = self._choose_first_pass(request, self._heads.find(index))
        try:
            return first_pass, self._propose(index, request, first_pass)
        except ServerError as error:
            if not (first_pass.runs_script and refuses_scripts(error)):
                raise
            _log.info("%s runs no scripts: %s", self._server, error)
            self._allows_scripts = False
            return self.run(index, request)

    def build_bodies(self, index: str, request: Request) -> list[dict[str, Any]]:
        """Return the bodies of the searches of the legs."""
        head = self._heads.find(index)
        first_pass = self._choose_first_pass(request, head)
        reach = self._choose_reach(index, request, first_pass)
        searches = build_searches(self._server.engine, request, reach, head, first_pass)
        return list(searches.values())

    def advise(
        self, index: str, first_pass: FirstPass, proposals: Proposals, damaged: Iterable[Key]
    ) -> list[str]:
        """Return the warning that queries cost more than they need, if they do.

        Passages with damaged codes do not count.
        """
        count = len(proposals.unknown.difference(damaged))
        if not count or first_pass is KEYS_ONLY:
            return []
        if self._allows_scripts:
            reason = "have short codes that are damaged or missing"
            remedy = f"hybrid-search reindex --index {index}"
        else:
            reason = "were not scored by the server, which runs no scripts"
            remedy = "allow inline scripts (script.allowed_types and script.allowed_contexts)"
        return [
            f"{count} of {len(proposals.best_spans)} passages {reason}, so their word codes were "
            f"fetched, which take several times as many bytes: {remedy}"
        ]

    def _search(
        self, index: str, graph: GraphVectors, searches: Sequence[Mapping[str, Any]]
    ) -> list[answers.Answer]:
        """Return the answers to the searches of the legs, with vectors for such a `graph`.

        Raises:
            IndexChangedError: If the vectors of the index are written in another way by now.
            ServerError: If the server refuses a search for another reason.
        """
        try:
            return self._searcher.search_together(index, searches)
        except ServerError as error:
            if error.status == 400 and self._heads.read(index).graph != graph:
                raise IndexChangedError(
                    f"index {index!r} was replaced while the query ran: run the query again"
                ) from error
            raise

    def _choose_first_pass(self, request: Request, head: ServerIndex) -> FirstPass:
        return choose_first_pass(
            self._server.engine,
            request,
            head.spec,
            is_wide=is_wide(request),
            allows_scripts=self._allows_scripts,
        )

    def _choose_reach(self, index: str, request: Request, first_pass: FirstPass) -> Reach:
        if not request.semantic:
            return reach_by_words(request)
        return choose_reach(self._server.engine, request, first_pass, self._sizes.find(index))

    def _propose(self, index: str, request: Request, first_pass: FirstPass) -> Proposals:
        """Return what both legs propose; check in the same request that the head still holds."""
        # once: another thread may read a new head meanwhile
        head = self._heads.find(index)
        reach = self._choose_reach(index, request, first_pass)
        searches = build_searches(self._server.engine, request, reach, head, first_pass)
        if self._heads.peek(index) is not None:
            searches["probe"] = PROBE
        parts = self._search(index, head.graph, list(searches.values()))
        parts_by_name = dict(zip(searches, parts, strict=True))
        if "probe" in parts_by_name:
            self._heads.check(index, parts_by_name.pop("probe")["hits"]["hits"])
        hits_by_leg = {leg: part["hits"]["hits"] for leg, part in parts_by_name.items()}
        further_hits = self._search_further(index, request, reach, head, first_pass, hits_by_leg)
        return read_proposals(hits_by_leg, further_hits, request, reach, first_pass)

    def _search_further(
        self,
        index: str,
        request: Request,
        reach: Reach,
        head: ServerIndex,
        first_pass: FirstPass,
        hits_by_leg: Mapping[str, Hits],
    ) -> dict[str, Hits]:
        """Return the best passages of further documents of the legs that few documents crowd.

        That takes a request more where there is such a leg.
        """
        found = find_crowded(hits_by_leg, request, reach)
        if not found:
            return {}
        lacking = {leg: request.window - len(documents) for leg, documents in found.items()}
        further = Reach(lacking.get("lexical", 0), lacking.get("semantic", 0), reach.searched)
        searches = build_searches(self._server.engine, request, further, head, first_pass, found)
        parts = self._search(index, head.graph, list(searches.values()))
        return {leg: part["hits"]["hits"] for leg, part in zip(searches, parts, strict=True)}


BATCH_PASSAGES = 500
"""Passages in one further request: their word codes are 16 MB."""


def build_searches(
    engine: Engine,
    request: Request,
    reach: Reach,
    index: ServerIndex,
    first_pass: FirstPass,
    found: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    """Return the bodies of the searches of the legs by name.

    Args:
        engine: The engine of the server.
        request: What is asked.
        reach: How far the index is searched.
        index: The index, as it was read.
        first_pass: What is requested of each passage.
        found: The documents that a leg has found before. If there are any, it is searched for the
            best passages of others.
    """
    fields = first_pass.fields
    searches = {}
    if reach.by_words:
        searches["lexical"] = request_bodies.match_body(
            request, reach.by_words, found=found.get("lexical", ()), **fields
        )
    if reach.by_graph:
        searches["semantic"] = request_bodies.knn_body(
            engine,
            request,
            reach.by_graph,
            reach.searched,
            index.graph,
            index.filter,
            found=found.get("semantic", ()),
            **fields,
        )
    return searches


def find_crowded(
    hits_by_leg: Mapping[str, Hits], request: Request, reach: Reach
) -> dict[str, list[str]]:
    """Return the documents of each leg that has fewer of them than its window.

    Left out is a leg that has found all that there is.
    """
    matches, nearest = hits_by_leg.get("lexical", []), hits_by_leg.get("semantic", [])
    crowded = {}
    if request.lexical and len(matches) == reach.by_words:
        crowded["lexical"] = _list_documents(matches)
    if request.semantic and len(nearest) == reach.by_graph:
        crowded["semantic"] = _list_documents([*nearest, *matches])
    return {leg: found for leg, found in crowded.items() if len(found) < request.window}


def _list_documents(hits: Hits) -> list[str]:
    return sorted({hit["fields"]["document_id"][0] for hit in hits})


def read_proposals(
    hits_by_leg: Mapping[str, Hits],
    further_hits_by_leg: Mapping[str, Hits],
    request: Request,
    reach: Reach,
    first_pass: FirstPass,
) -> Proposals:
    """Return the passages of the legs, with their best spans.

    Args:
        hits_by_leg: The best passages of each leg.
        further_hits_by_leg: The best passages of further documents.
        request: What was asked.
        reach: How far the index was searched.
        first_pass: What was requested of each passage.
    """
    matches = hits_by_leg.get("lexical", [])
    unlisted = matches[-1]["_score"] if matches and len(matches) == reach.by_words else 0.0
    matches = [*matches, *further_hits_by_leg.get("lexical", [])]
    nearest = [*hits_by_leg.get("semantic", []), *further_hits_by_leg.get("semantic", [])]
    proposing = [*nearest, *matches]
    best_spans = first_pass.read_spans(proposing, request) if request.semantic else {}
    bm25 = read_scores(matches) if request.lexical else {}
    return Proposals(bm25, best_spans, unlisted if request.lexical else inf)


def read_scores(hits: Hits) -> dict[Key, float]:
    """Return the scores of the hits of a search, by key."""
    return {passage_codec.hit_key(hit): hit["_score"] for hit in hits}


def split_batches(keys: Sequence[Key]) -> Iterator[list[Key]]:
    """Yield `keys` in lists for one request each."""
    for start in range(0, len(keys), BATCH_PASSAGES):
        yield list(keys[start : start + BATCH_PASSAGES])


def is_wide(request: Request) -> bool:
    """Return whether the codes of all candidates are too much for one answer."""
    return request.window > BATCH_PASSAGES
