"""A retriever for LangChain. It needs the extra ``langchain``."""

from __future__ import annotations

from typing import Any

from hybrid_search.errors import MissingExtraError
from hybrid_search.retrievers.searcher import PASSAGE, RetrievedDocument, Searcher
from hybrid_search.system import install_command

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        "the retriever for LangChain needs the package langchain-core: "
        f"{install_command('langchain')}"
    ) from missing

from pydantic import ConfigDict, Field, PrivateAttr


class HybridSearchRetriever(BaseRetriever):
    """Finds passages for a chain: `invoke`, and `ainvoke` without holding up the event loop.

    It takes all parameters of `hybrid_search.query` but the phrase, when it is made and with each
    `invoke`: ``index``, ``alpha``, ``size``, ``where`` and so on.

    Attributes:
        url: As in `hybrid_search.query`. Logins come from the environment.
        content: The content of a document: passage, or turn, the turn around the best span.
        client: A client to use instead of `url`; its owner closes it.

    Raises:
        UsageError: If a value is not allowed (pydantic raises it as its ValidationError).
        TypeError: If a query has no parameter of a name.
    """

    # a URL with a secret is refused, and the error must not show it
    model_config = ConfigDict(
        extra="allow", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    url: str | None = None
    content: str = PASSAGE
    client: Any = Field(default=None, exclude=True, repr=False)
    _searcher: Searcher = PrivateAttr()

    def model_post_init(self, _: Any, /) -> None:
        """Check the options as soon as the retriever is made."""
        options: Any = self.model_extra
        self._searcher = Searcher(self.url, self.content, self.client, options)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain looks for its name)
        **options: Any,
    ) -> list[Document]:
        return _convert(self._searcher.search(query, options))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
        **options: Any,
    ) -> list[Document]:
        return _convert(await self._searcher.search_async(query, options))


def _convert(documents: list[RetrievedDocument]) -> list[Document]:
    return [
        Document(id=document.id, page_content=document.text, metadata=document.metadata)
        for document in documents
    ]
