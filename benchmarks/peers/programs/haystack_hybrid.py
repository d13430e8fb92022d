"""Haystack: OpenSearchHybridRetriever, its BM25 and embedding retrievers with a joiner (RRF)."""

from __future__ import annotations

from typing import Any

from haystack import Document
from haystack.components.joiners.document_joiner import JoinMode
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)
from haystack_integrations.components.retrievers.opensearch import OpenSearchHybridRetriever
from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

from benchmarks.peers.types import Answer, Target, Texts


def build(texts: Texts, target: Target) -> Any:
    """Write the passages into OpenSearch."""
    store = OpenSearchDocumentStore(
        hosts=target.url,
        index=target.index,
        embedding_dim=384,
        method={"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
    )
    embedder = SentenceTransformersDocumentEmbedder(model=str(target.weights), progress_bar=False)
    documents = [
        Document(id=passage.id, content=passage.text, meta={"document": passage.document})
        for passage in texts.passages
    ]
    store.write_documents(embedder.run(documents)["documents"])
    return OpenSearchHybridRetriever(
        document_store=store,
        embedder=SentenceTransformersTextEmbedder(model=str(target.weights), progress_bar=False),
        join_mode=JoinMode.RECIPROCAL_RANK_FUSION,
    )


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages."""
    options: dict[str, Any] = {"top_k_bm25": k, "top_k_embedding": k}
    if document is not None:
        condition = {"field": "meta.document", "operator": "==", "value": document}
        options |= {"filters_bm25": condition, "filters_embedding": condition}
    hits = index.run(query=phrase, **options)["documents"]
    return [Answer(hit.id) for hit in hits[:k]]
