"""The searches of both legs, which propose passages, and how their answers are read.

BM25 proposes passages for the span leg, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybrid_search.backends.server import answers, passage_codec, request_bodies
from hybrid_search.backends.server.proposals import Proposals
from hybrid_search.backends.server.searcher import Hits, Search
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.types import Key, Request

PROPOSED = 600
"""Passages that the span leg takes from the server's graph, with their short codes.

With 100 of BM25 they hold .967 of the exact ten best of 35,269 passages, as far as the graph misses
none; 400 hold .951.
"""

PROPOSED_BY_WORDS = 100
"""Passages that BM25 proposes for the span leg: `docs/servers.md` has the recall without them."""

BATCH_PASSAGES = 500
"""Passages in one further request: their token codes are 16 MB."""


def build_searches(engine: Engine, request: Request, passages: int | None) -> dict[str, Search]:
    """Return the searches of the legs by name, in an index of so many passages.

    BM25 is searched for the span leg, too. The passages of a wide request come without short
    codes, which would be too much for one answer: they are all scored exactly.
    """
    has_codes = request.semantic and not is_wide(request)
    fields = request_bodies.SHORT_CODES if has_codes else request_bodies.KEYS
    scored = answers.SCORED_SHORT_CODES if has_codes else answers.SCORED_KEYS
    searches = {}
    if request.lexical or has_codes:
        searches["lexical"] = Search(
            request_bodies.match_body(request, _lexical_size(request), **fields), scored
        )
    if request.semantic:
        size = max(PROPOSED, 2 * request.window) if has_codes else request.window
        searched = request_bodies.count_searched(passages)
        body = request_bodies.knn_body(engine, request, size, searched, **fields)
        shape = answers.SHORT_CODES if has_codes else answers.KEYS
        searches["semantic"] = Search(body, shape)
    return searches


def _lexical_size(request: Request) -> int:
    """Return how many passages BM25 is searched for."""
    return max(PROPOSED_BY_WORDS, request.window) if request.semantic else request.window


def read_proposals(hits_by_leg: Mapping[str, Hits], request: Request) -> Proposals:
    """Return the passages of the legs, with the short codes that came with them."""
    matches = hits_by_leg.get("lexical", [])
    has_all_matches = "lexical" in hits_by_leg and len(matches) < _lexical_size(request)
    proposing = [*hits_by_leg.get("semantic", []), *matches] if request.semantic else []
    codes = {passage_codec.hit_key(hit): passage_codec.decode_short_codes(hit) for hit in proposing}
    return Proposals(read_scores(matches), codes, has_all_matches)


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
