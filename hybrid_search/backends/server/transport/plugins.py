"""Lists the plugins of a cluster."""

from __future__ import annotations

from hybrid_search.backends.server.transport.answers import PLUGINS
from hybrid_search.backends.server.transport.base import Server

KNN = "opensearch-knn"
"""The plugin without which there are no vectors."""


def list_plugins(server: Server) -> set[str]:
    """Return the plugins of an OpenSearch; raises AccessError if the login may not list them."""
    plugins = server.request(
        "GET",
        "/_cat/plugins",
        params={"format": "json", "h": "component"},
        read=PLUGINS.read,
    )
    return {plugin["component"] for plugin in plugins}
