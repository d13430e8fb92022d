"""Which plugins a cluster has. The server's own hybrid query is one's: neural-search."""

from __future__ import annotations

from hybrid_search.backends.server.transport.base import Server

NEURAL_SEARCH = "opensearch-neural-search"

KNN = "opensearch-knn"
"""Without it there are no vectors."""

MISSING_PLUGIN_ERRORS = (
    "unknown query [hybrid]",
    "Invalid processor type normalization-processor",
    "Invalid processor type score-ranker-processor",
)
"""What an OpenSearch without it answers to a hybrid query, with status 400."""


def has_neural_search(server: Server) -> bool:
    """Whether `server` has the hybrid query.

    Raises AccessError where the user may not list plugins (cluster:monitor/nodes/info).
    """
    if server.engine != "opensearch":
        return False
    return NEURAL_SEARCH in list_plugins(server)


def list_plugins(server: Server) -> set[str]:
    """The plugins of an OpenSearch. Raises AccessError where the user may not list them."""
    return {
        plugin["component"]
        for plugin in server.request(
            "GET", "/_cat/plugins", params={"format": "json", "h": "component"}
        )
    }


def explain_missing_plugin(reason: str) -> str | None:
    """What to tell the user where `reason`, a server's refusal, comes from the missing plugin; None
    where it does not.
    """
    if not any(message in reason for message in MISSING_PLUGIN_ERRORS):
        return None
    return f"this OpenSearch has no plugin {NEURAL_SEARCH}, and so no hybrid query ({reason}): install it, or leave compat out"
