"""The baseline on the same server: a ``match``, and kNN over one vector a passage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.servers.entries import Corpus
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.graph_vectors import round_vector
from hybrid_search.backends.server.passage_codec import passage_id, to_json
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.text import word_codes
from hybrid_search.text.types import Floats

NEIGHBOURS = 100


class PlainIndex:
    """An index of passages with their text and one vector each."""

    def __init__(self, backend: ServerBackend, name: str) -> None:
        self._server, self.name, self._analyzer = backend.server, name, backend.options.analyzer

    def fill(self, corpus: Corpus) -> None:
        """Create the index and write `corpus` into it."""
        vector: dict[str, Any] = {
            "type": "dense_vector",
            "dims": corpus.spec.dimension,
            "index": True,
            "similarity": "dot_product",
        }
        if self._server.engine == "opensearch":
            method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
            vector = {"type": "knn_vector", "dimension": corpus.spec.dimension, "method": method}
        fields = {"text": {"type": "text", "analyzer": self._analyzer}, "vector": vector}
        index: dict[str, Any] = {
            "number_of_replicas": 0,
            **({"knn": True} if self._server.engine == "opensearch" else {}),
        }
        self._server.request(
            "PUT",
            f"/{self.name}",
            body={"settings": {"index": index}, "mappings": {"properties": fields}},
        )
        assert all(outcome.is_accepted for outcome in self._server.bulk(self._actions(corpus)))
        self._server.request("POST", f"/{self.name}/_refresh")

    def _actions(self, corpus: Corpus) -> Iterator[Action]:
        for entry in corpus.entries:
            mean = word_codes.vectors(entry.tokens).sum(axis=0)
            length = float(np.linalg.norm(mean))
            vector = {"vector": round_vector(mean / length)} if length else {}
            id_ = passage_id(entry.document.id, entry.passage.ordinal)
            yield Action(self.name, id_, to_json({"text": entry.text, **vector}))

    def ask(self, phrase: str, vector: Floats, size: int = 10) -> None:
        """Send both queries in one ``_msearch``, for `size` hits each with their text."""
        rounded_vector = round_vector(vector)
        knn: dict[str, Any] = {
            "knn": {
                "field": "vector",
                "query_vector": rounded_vector,
                "k": NEIGHBOURS,
                "num_candidates": NEIGHBOURS,
            }
        }
        if self._server.engine == "opensearch":
            knn = {"query": {"knn": {"vector": {"vector": rounded_vector, "k": NEIGHBOURS}}}}
        response_fields = {"size": size, "_source": ["text"]}
        head = {"index": self.name}
        self._server.request(
            "POST",
            "/_msearch",
            lines=[
                head,
                {"query": {"match": {"text": phrase}}, **response_fields},
                head,
                {**knn, **response_fields},
            ],
        )

    def drop(self) -> None:
        """Remove the index."""
        self._server.request("DELETE", f"/{self.name}")
