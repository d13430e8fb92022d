"""What is particular to OpenSearch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid_search.backends.server.dialects.base import Dialect, Filters, Version

EVERY_PASSAGE = {"range": {"ordinal": {"gte": 0}}}
"""Matches every passage.

Before OpenSearch 3.5 a filter inside a nested kNN without this clause finds nothing if all others
are on doc values of numbers or keywords (opensearch-project/k-NN#2222; tried on 2.19.1).
"""

OVERRIDDEN = (7, 10, 2)
"""What a server says that is told to pass for an early Elasticsearch."""


class OpenSearchDialect(Dialect):
    """What is particular to OpenSearch."""

    name = "opensearch"
    title = "OpenSearch"
    oldest = (2, 12, 0)
    knn_plugin = "opensearch-knn"
    takes_aws_signatures = True
    searched_share = 10

    def explain_unsupported(self, version: Version) -> str:
        """Return why a server of this version is not supported, "" if it is."""
        if version == OVERRIDDEN:
            return "set compatibility.override_main_response_version to false"
        return super().explain_unsupported(version)

    def extend_filters(self, filters: Filters, alias_filter: Mapping[str, Any] | None) -> Filters:
        """Return the conditions of a kNN, with the filter of the alias if it has one."""
        # the server itself applies that to what a kNN has found, which may then be nothing
        filters = [*filters, *([dict(alias_filter)] if alias_filter else [])]
        return [EVERY_PASSAGE, *filters] if filters else []

    def build_knn(
        self, vector: list[float], passages: int, spans: int, filters: Filters
    ) -> dict[str, Any]:
        """Return the parts of a request's body that search the graphs."""
        del passages  # the size of the request says how many
        knn: dict[str, Any] = {"vector": vector, "k": spans}
        if filters:
            knn["filter"] = {"bool": {"filter": filters}}
        nested = {"path": "spans", "score_mode": "max", "query": {"knn": {"spans.vector": knn}}}
        return {"query": {"nested": nested}}
