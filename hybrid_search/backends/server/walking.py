"""Every passage of an index on a server, page by page, in the order of their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybrid_search.backends.base import Fault, Listed
from hybrid_search.backends.server import bodies, documents, indexes
from hybrid_search.backends.server.base import Server

LISTED = 5000
"""Passages of a page without texts and codes: 1 MB."""

COLUMNS = ["document_id", "ordinal", "passages", "source_hash"]

UNFINDABLE = {
    "bool": {
        "filter": [{"range": {"span_count": {"gt": 0}}}],
        "must_not": [{"nested": {"path": "spans", "query": {"exists": {"field": "spans.vector"}}}}],
    }
}
"""Passages that have spans and not one vector: the span leg never finds them."""


def hits(server: Server, name: str, shown: Mapping[str, Any], page: int) -> Iterator[dict[str, Any]]:
    """The hits of all passages of an index or alias, or of those that `shown` asks for, with what it shows of them; `page` are read at once."""
    body: dict[str, Any] = {"size": page, "sort": ["document_id", "ordinal"], **shown}
    while found := indexes.search(server, name, body)["hits"]["hits"]:
        yield from found
        body["search_after"] = found[-1]["sort"]


def listed(server: Server, name: str) -> Iterator[Listed]:
    """All passages, and which of them have no vectors."""
    lost = {documents.key(hit) for hit in hits(server, name, {**bodies.KEYS, "query": UNFINDABLE}, LISTED)}
    for hit in hits(server, name, {**bodies.KEYS, "docvalue_fields": COLUMNS}, LISTED):
        key, held = documents.key(hit), {each: hit["fields"][each][0] for each in COLUMNS}
        faults = (Fault("vectors", "none of its spans has a vector on the server"),) if key in lost else ()
        yield Listed(key, held["document_id"], held["ordinal"], held["passages"], held["source_hash"], faults)
