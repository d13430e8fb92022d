"""What is particular to Elasticsearch."""

from __future__ import annotations

from typing import Any

from hybrid_search.backends.server.dialects.base import Dialect, Filters, Version

EARLY_TERMINATION_SINCE = (9, 3, 0)
"""From this version on Elasticsearch ends a search in a graph early, unless an index forbids it.

Among near duplicates that is too early (elastic/elasticsearch#130564).
"""


class ElasticsearchDialect(Dialect):
    """What is particular to Elasticsearch."""

    name = "elasticsearch"
    title = "Elasticsearch"
    oldest = (8, 13, 0)
    tells_privileges = True
    searched_share = 7  # to find as much as OpenSearch, it has to search for more

    def fill_settings(self, version: Version) -> dict[str, Any]:
        """Return values for placeholders that only this engine's ``passages.json`` has."""
        return {"early_termination": None if version < EARLY_TERMINATION_SINCE else False}

    def build_knn(
        self, vector: list[float], passages: int, spans: int, filters: Filters
    ) -> dict[str, Any]:
        """Return the parts of a request's body that search the graphs."""
        knn: dict[str, Any] = {
            "field": "spans.vector",
            "query_vector": vector,
            "k": passages,
            "num_candidates": spans,
        }
        return {"knn": {**knn, "filter": filters} if filters else knn}
