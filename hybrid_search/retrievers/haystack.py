"""A component for Haystack's pipelines. It needs the extra ``haystack``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from hybrid_search import config
from hybrid_search.client import Client
from hybrid_search.errors import MissingExtraError
from hybrid_search.retrievers.searcher import PASSAGE, RetrievedDocument, Searcher
from hybrid_search.search.query import QueryOptions
from hybrid_search.system import install_command

config.disable_haystack_reports()
try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"the retriever for Haystack needs the package haystack-ai: {install_command('haystack')}"
    ) from missing


@component
class HybridSearchRetriever:
    """Finds passages in a pipeline, also in an asynchronous one.

    Args:
        url: As in `hybrid_search.query`. Logins come from the environment, so a serialised
            pipeline has none.
        content: The content of a document: passage, or turn, the turn around the best span.
        client: A client to use instead of `url`; its owner closes it. Such a component cannot be
            serialised.
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
        self._searcher = Searcher(url, content, client, options)

    def warm_up(self) -> None:
        """Load the encoder before the first query waits for it."""
        _ = self._searcher.client.encoder

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, where: Mapping[str, Any] | None = None, size: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the documents for a query.

        Args:
            query: The phrase.
            where: Metadata that a document must have, instead of the component's.
            size: The number of documents, instead of the component's.

        Returns:
            The documents under ``documents``, best first.
        """
        return _convert(self._searcher.search(query, _list_changes(where, size)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, where: Mapping[str, Any] | None = None, size: int | None = None
    ) -> dict[str, list[Document]]:
        """Return what `run` does, without holding up the event loop."""
        return _convert(await self._searcher.search_async(query, _list_changes(where, size)))

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a serialised pipeline holds it.

        Returns:
            Its class and its parameters. UsageError is raised if it has a client of its own.
        """
        parameters: dict[str, Any] = default_to_dict(self, **self._searcher.describe())
        return parameters

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HybridSearchRetriever:
        """Return the component that `to_dict` wrote down."""
        retriever: HybridSearchRetriever = default_from_dict(cls, data)
        return retriever


def _list_changes(where: Mapping[str, Any] | None, size: int | None) -> dict[str, Any]:
    """Return the options of one run."""
    changes = {"where": where, "size": size}
    return {name: value for name, value in changes.items() if value is not None}


def _convert(documents: list[RetrievedDocument]) -> dict[str, list[Document]]:
    converted = [
        Document(id=item.id, content=item.text, meta=item.metadata, score=item.score)
        for item in documents
    ]
    return {"documents": converted}
