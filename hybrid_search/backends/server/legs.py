"""The searches of both legs, which propose passages, and how their answers are read.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.first_pass import FirstPass
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.reach import Reach
from hybrid_search.backends.server.searcher import Hits, Search
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import Key, Request

BATCH_PASSAGES = 500
"""Passages in one further request: their token codes are 16 MB."""


def build_searches(
    engine: Engine, request: Request, reach: Reach, graph: GraphVectors, first_pass: FirstPass
) -> dict[str, Search]:
    """Return the searches of the legs by name.

    Args:
        engine: The engine of the server.
        request: What is asked.
        reach: How far the index is searched.
        graph: How the vectors in its graphs are written.
        first_pass: What is requested of each passage.
    """
    fields, shape = first_pass.fields, first_pass.shape
    searches = {}
    if reach.by_words:
        body = request_bodies.match_body(request, reach.by_words, **fields)
        searches["lexical"] = Search(body, shape)
    if reach.by_graph:
        body = request_bodies.knn_body(
            engine, request, reach.by_graph, reach.searched, graph, **fields
        )
        searches["semantic"] = Search(body, shape)
    return searches


def read_proposals(
    hits_by_leg: Mapping[str, Hits], request: Request, reach: Reach, first_pass: FirstPass
) -> Proposals:
    """Return the passages of the legs, with their best spans."""
    matches = hits_by_leg.get("lexical", [])
    has_all_matches = request.lexical and len(matches) < reach.by_words
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
