"""Lists every passage of an index on a server, page by page, ordered by document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybrid_search.backends.codes_fault import find_codes_fault
from hybrid_search.backends.server import aliases, passage_codec, request_bodies
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.types import Fault, ListedPassage

PAGE_PASSAGES = 5000
"""Passages in a page without texts and token codes: 1 MB."""

PAGE_CODES = 200
"""Passages in a page with token codes: 7 MB."""

COLUMNS = ["document_id", "ordinal", "passages", "source_hash"]

UNFINDABLE = {
    "bool": {
        "filter": [{"range": {"span_count": {"gt": 0}}}],
        "must_not": [{"nested": {"path": "spans", "query": {"exists": {"field": "spans.vector"}}}}],
    }
}
"""Matches passages that have spans but no vector: the span leg never finds them."""


def iterate_hits(
    server: Server, name: str, overrides: Mapping[str, Any], page: int
) -> Iterator[dict[str, Any]]:
    """Yield the hits of all passages of an index or alias, `page` of them per request.

    `overrides` are merged into the request body: the fields of a hit, and a query to narrow the
    passages.
    """
    body: dict[str, Any] = {"size": page, "sort": ["document_id", "ordinal"], **overrides}
    while page_hits := aliases.search(server, name, body)["hits"]["hits"]:
        yield from page_hits
        body["search_after"] = page_hits[-1]["sort"]


def iterate_passages(
    server: Server, index: aliases.ServerIndex, *, full: bool
) -> Iterator[ListedPassage]:
    """Yield all passages, with the fault of those that have no vectors, or damaged token codes.

    Token codes are only read with `full`.
    """
    unfindable_keys = {
        passage_codec.hit_key(hit)
        for hit in iterate_hits(
            server, index.name, {**request_bodies.KEYS, "query": UNFINDABLE}, PAGE_PASSAGES
        )
    }
    columns = [*COLUMNS, "tokens"] if full else COLUMNS
    fields = {**request_bodies.KEYS, "docvalue_fields": columns}
    page = PAGE_CODES if full else PAGE_PASSAGES
    for hit in iterate_hits(server, index.name, fields, page):
        key = passage_codec.hit_key(hit)
        values = {column: hit["fields"][column][0] for column in COLUMNS}
        faults = [Fault("vectors", "none of its spans has a vector on the server")]
        codes_fault = (
            find_codes_fault(passage_codec.decode_codes(hit), index.spec.dimension)
            if full
            else None
        )
        yield ListedPassage(
            key,
            values["document_id"],
            values["ordinal"],
            values["passages"],
            values["source_hash"],
            (*(faults if key in unfindable_keys else ()), *((codes_fault,) if codes_fault else ())),
        )
