"""Every passage of an index on a server, page by page, in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybrid_search.backends.server import aliases, passage_codec, request_bodies
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.types import Fault, ListedPassage

PAGE_PASSAGES = 5000
"""Passages of a page without texts and codes: 1 MB."""

COLUMNS = ["document_id", "ordinal", "passages", "source_hash"]

UNFINDABLE = {
    "bool": {
        "filter": [{"range": {"span_count": {"gt": 0}}}],
        "must_not": [{"nested": {"path": "spans", "query": {"exists": {"field": "spans.vector"}}}}],
    }
}
"""Passages that have spans and not one vector: the span leg never finds them."""


def iterate_hits(
    server: Server, name: str, overrides: Mapping[str, Any], page: int
) -> Iterator[dict[str, Any]]:
    """The hits of all passages of an index or alias, or of those that `shown` asks for, with what
    it shows of them; `page` are read at once.
    """
    body: dict[str, Any] = {"size": page, "sort": ["document_id", "ordinal"], **overrides}
    while page_hits := aliases.search(server, name, body)["hits"]["hits"]:
        yield from page_hits
        body["search_after"] = page_hits[-1]["sort"]


def iterate_passages(server: Server, name: str) -> Iterator[ListedPassage]:
    """All passages, and which of them have no vectors."""
    unfindable_keys = {
        passage_codec.hit_key(hit)
        for hit in iterate_hits(
            server, name, {**request_bodies.KEYS, "query": UNFINDABLE}, PAGE_PASSAGES
        )
    }
    for hit in iterate_hits(
        server, name, {**request_bodies.KEYS, "docvalue_fields": COLUMNS}, PAGE_PASSAGES
    ):
        key, values = (
            passage_codec.hit_key(hit),
            {column: hit["fields"][column][0] for column in COLUMNS},
        )
        faults = (
            (Fault("vectors", "none of its spans has a vector on the server"),)
            if key in unfindable_keys
            else ()
        )
        yield ListedPassage(
            key,
            values["document_id"],
            values["ordinal"],
            values["passages"],
            values["source_hash"],
            faults,
        )
