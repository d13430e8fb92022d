"""The searches of both legs, which propose passages, and how their answers are read.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.first_pass import KEYS_ONLY, FirstPass
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.index_size import IndexSize
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.searcher import Hits, Search
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import Key, Request

PROPOSED_BY_WORDS = 300
"""Passages that BM25 proposes, for both legs.

A graph search misses passages among near duplicates, and BM25 proposes a passage in a tenth of the
time. What is known of the BM25 scores of all others is that they are less, so the more passages it
proposes, the fewer token codes are fetched.
"""

BATCH_PASSAGES = 500
"""Passages in one further request: their token codes are 16 MB."""


def proposes_by_words(request: Request, first_pass: FirstPass) -> bool:
    """Return whether BM25 proposes passages: for the span leg, too, unless the request is wide."""
    return request.lexical or first_pass is not KEYS_ONLY


def build_lexical_search(request: Request, first_pass: FirstPass) -> Search:
    """Return the search for the passages that BM25 proposes."""
    size = _count_by_words(request, first_pass)
    body = request_bodies.match_body(request, size, **first_pass.fields)
    return Search(body, first_pass.shape)


def build_semantic_search(
    engine: Engine, request: Request, size: IndexSize, graph: GraphVectors, first_pass: FirstPass
) -> Search:
    """Return the search for the passages that the graphs propose.

    Args:
        engine: The engine of the server.
        request: What is asked.
        size: How large the index is, which says how far it is searched.
        graph: How the vectors in its graphs are written.
        first_pass: What is requested of each passage.
    """
    proposed = _count_by_graph(request, size, first_pass)
    searched = size.count_searched()
    body = request_bodies.knn_body(engine, request, proposed, searched, graph, **first_pass.fields)
    return Search(body, first_pass.shape)


def _count_by_words(request: Request, first_pass: FirstPass) -> int:
    """Return how many passages BM25 is searched for."""
    least = 0 if first_pass is KEYS_ONLY else PROPOSED_BY_WORDS
    return max(least, request.window)


def _count_by_graph(request: Request, size: IndexSize, first_pass: FirstPass) -> int:
    """Return how many passages the graphs are to propose."""
    if first_pass is KEYS_ONLY:
        return request.window
    return max(size.count_proposed(), 2 * request.window)


def read_proposals(
    hits_by_leg: Mapping[str, Hits], request: Request, first_pass: FirstPass
) -> Proposals:
    """Return the passages of the legs, with their best spans."""
    matches = hits_by_leg.get("lexical", [])
    has_all_matches = request.lexical and len(matches) < _count_by_words(request, first_pass)
    proposing = [*hits_by_leg.get("semantic", []), *matches]
    best_spans = first_pass.read_spans(proposing, request) if request.semantic else {}
    bm25 = read_scores(matches) if request.lexical else {}
    return Proposals(bm25, best_spans, has_all_matches)


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
