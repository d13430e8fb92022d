"""The searches of both legs, which propose passages, and how their answers are read.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybrid_search.backends.server import answers, passage_codec, request_bodies
from hybrid_search.backends.server.first_pass import KEYS_ONLY, FirstPass
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.searcher import Hits, Search
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import Key, Request

PROPOSED = 600
"""Passages that the span leg takes from the server's graph.

With 100 of BM25 they hold .967 of the exact ten best of 35,269 passages, as far as the graph misses
none; 400 hold .951.
"""

PROPOSED_BY_WORDS = 100
"""Passages that BM25 proposes for the span leg: `docs/servers.md` has the recall without them."""

RANKED_BY_WORDS = 300
"""Passages whose BM25 scores come with the first request.

What is known of the others is that they score less, so the more there are the fewer token codes
are fetched.
"""

BATCH_PASSAGES = 500
"""Passages in one further request: their token codes are 16 MB."""


def build_searches(
    engine: Engine,
    request: Request,
    passages: int | None,
    graph: GraphVectors,
    first_pass: FirstPass,
) -> dict[str, Search]:
    """Return the searches of the legs by name.

    BM25 is searched for the span leg, too, unless the request is wide.

    Args:
        engine: The engine of the server.
        request: What is asked.
        passages: How many passages a shard of the index has, None if they were not counted yet.
        graph: How the vectors in its graphs are written.
        first_pass: What is requested of each passage.
    """
    ranks = first_pass is not KEYS_ONLY
    searches = {}
    if request.lexical:
        body = request_bodies.match_body(request, _count_ranked(request, first_pass))
        searches["lexical"] = Search(body, answers.SCORED_KEYS)
    if ranks:
        size = max(PROPOSED_BY_WORDS, request.window)
        body = request_bodies.match_body(request, size, **first_pass.fields)
        searches["words"] = Search(body, first_pass.shape)
    if request.semantic:
        size = max(PROPOSED, 2 * request.window) if ranks else request.window
        searched = request_bodies.count_searched(passages)
        body = request_bodies.knn_body(engine, request, size, searched, graph, **first_pass.fields)
        searches["semantic"] = Search(body, first_pass.shape)
    return searches


def _count_ranked(request: Request, first_pass: FirstPass) -> int:
    """Return how many passages BM25 is searched for."""
    return request.window if first_pass is KEYS_ONLY else max(RANKED_BY_WORDS, request.window)


def read_proposals(
    hits_by_leg: Mapping[str, Hits], request: Request, first_pass: FirstPass
) -> Proposals:
    """Return the passages of the legs, with their best spans."""
    matches = hits_by_leg.get("lexical", [])
    has_all_matches = "lexical" in hits_by_leg and len(matches) < _count_ranked(request, first_pass)
    proposing = [*hits_by_leg.get("semantic", []), *hits_by_leg.get("words", matches)]
    best_spans = first_pass.read_spans(proposing, request) if request.semantic else {}
    return Proposals(read_scores(matches), best_spans, has_all_matches)


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
