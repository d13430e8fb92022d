"""What OpenSearch and Elasticsearch do each in its own way: a `Dialect` for each of them.

In: the name of an engine. Out: its `Dialect`. No other module decides by the engine.
"""

from __future__ import annotations

from hybrid_search.backends.server.dialects.base import Dialect
from hybrid_search.backends.server.dialects.elasticsearch import ElasticsearchDialect
from hybrid_search.backends.server.dialects.opensearch import OpenSearchDialect
from hybrid_search.errors import UsageError

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (OpenSearchDialect(), ElasticsearchDialect())
}
"""The dialects by the names of their engines. The last one is that of a server which names none."""

SCHEMES = (
    *(f"{engine}+{scheme}" for engine in DIALECTS for scheme in ("https", "http")),
    "https",
    "http",
)
"""URL schemes of servers; https and http alone let the server say which engine it is."""


def find_dialect(engine: str) -> Dialect:
    """Return the dialect of an engine; raise UsageError if there is no such engine."""
    if engine not in DIALECTS:
        raise UsageError(f"there is no engine {engine!r}: use {' or '.join(DIALECTS)}")
    return DIALECTS[engine]


def recognise(distribution: object) -> Dialect:
    """Return the dialect of a server, from the `distribution` that ``GET /`` answers."""
    *named, default = DIALECTS.values()
    return next((dialect for dialect in named if dialect.name == distribution), default)
