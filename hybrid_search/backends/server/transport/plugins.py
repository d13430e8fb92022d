"""Lists the plugins of a cluster; the server's own hybrid query is in neural-search."""

from __future__ import annotations

from hybrid_search.backends.server.transport.answers import PLUGINS
from hybrid_search.backends.server.transport.base import Server

NEURAL_SEARCH = "opensearch-neural-search"

KNN = "opensearch-knn"
"""The plugin without which there are no vectors."""

MISSING_PLUGIN_ERRORS = (
    "unknown query [hybrid]",
    "Invalid processor type normalization-processor",
    "Invalid processor type score-ranker-processor",
)
"""Answers, with status 400, of an OpenSearch without neural-search to a hybrid query."""


def has_neural_search(server: Server) -> bool:
    """Return whether `server` has the hybrid query.

    Raises AccessError if the login may not list plugins (cluster:monitor/nodes/info).
    """
    if server.engine != "opensearch":
        return False
    return NEURAL_SEARCH in list_plugins(server)


def list_plugins(server: Server) -> set[str]:
    """Return the plugins of an OpenSearch; raises AccessError if the login may not list them."""
    plugins = server.request(
        "GET",
        "/_cat/plugins",
        params={"format": "json", "h": "component"},
        read=PLUGINS.read,
    )
    return {plugin["component"] for plugin in plugins}


def explain_missing_plugin(reason: str) -> str | None:
    """Return the message for a refusal that comes from the missing plugin, else None."""
    if not any(message in reason for message in MISSING_PLUGIN_ERRORS):
        return None
    return (
        f"this OpenSearch has no plugin {NEURAL_SEARCH}, and so no hybrid query ({reason}): "
        "install it, or leave compat out"
    )
