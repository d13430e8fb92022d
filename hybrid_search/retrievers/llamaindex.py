"""A retriever for LlamaIndex. It needs the extra ``llamaindex``."""

from __future__ import annotations

from typing import Unpack

from hybrid_search.client import Client
from hybrid_search.errors import MissingExtraError
from hybrid_search.retrievers.searcher import OWN_KEY, PASSAGE, RetrievedDocument, Searcher
from hybrid_search.search.query import QueryOptions
from hybrid_search.system import install_command

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import (
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        "the retriever for LlamaIndex needs the package llama-index-core: "
        f"{install_command('llamaindex')}"
    ) from missing


class HybridSearchRetriever(BaseRetriever):
    """Finds passages for a query engine: `retrieve`, and `aretrieve` on an event loop.

    Args:
        url: As in `hybrid_search.query`. Logins come from the environment.
        content: The text of a node: passage, or turn, the turn around the best span.
        client: A client to use instead of `url`; its owner closes it.
        **options: The parameters of a query, each explained in `hybrid_search.query`.

    Raises:
        UsageError: If a value is not allowed.
        TypeError: If a query has no parameter of a name.
    """

    def __init__(
        self,
        url: str | None = None,
        content: str = PASSAGE,
        client: Client | None = None,
        **options: Unpack[QueryOptions],
    ) -> None:
        super().__init__()
        self._searcher = Searcher(url, content, client, options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _convert(self._searcher.search(query_bundle.query_str, {}))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _convert(await self._searcher.search_async(query_bundle.query_str, {}))


def _convert(documents: list[RetrievedDocument]) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=_build_node(document), score=document.score) for document in documents
    ]


def _build_node(document: RetrievedDocument) -> TextNode:
    """Return the node of a document; its numbers and spans are not for a language model to read."""
    return TextNode(
        id_=document.id,
        text=document.text,
        metadata=document.metadata,
        start_char_idx=document.start,
        end_char_idx=document.end,
        excluded_llm_metadata_keys=[OWN_KEY],
        excluded_embed_metadata_keys=[OWN_KEY],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.document_id)},
    )
