"""The searches of both legs, which propose passages, and how their answers are read.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.aliases import ServerIndex
from hybrid_search.backends.server.first_pass import FirstPass
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.reach import Reach
from hybrid_search.backends.server.searcher import Hits
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import Key, Request

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
