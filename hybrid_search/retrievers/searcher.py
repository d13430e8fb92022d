"""`Searcher`: asks one client for documents, by calls that wait and by calls that are awaited."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from hybrid_search.api import shared_client
from hybrid_search.async_client import AsyncClient
from hybrid_search.client import Client
from hybrid_search.credentials import refuse_secrets
from hybrid_search.errors import UsageError
from hybrid_search.parameters import check_choice
from hybrid_search.retrievers.documents import CONTENTS, PASSAGE, RetrievedDocument, build_document
from hybrid_search.search.query import Query, QueryOptions
from hybrid_search.search.result import Result


class Searcher:
    """Asks one client with the same options each time.

    Args:
        url: As in `hybrid_search.query`; the client is that of this process.
        content: passage, or turn: the one around the best span.
        client: A client to ask in place of that of `url`. Its owner closes it.
        options: The parameters of a query, each explained in `hybrid_search.query`.

    Raises:
        UsageError: If a value is not allowed, the URL holds a secret, or there are both a URL and a
            client.
        TypeError: If a query has no parameter of a name.
    """

    def __init__(
        self,
        url: str | None = None,
        content: str = PASSAGE,
        client: Client | None = None,
        options: QueryOptions | None = None,
    ) -> None:
        check_choice("content", content, CONTENTS)
        if url is not None:
            refuse_secrets(url)
            if client is not None:
                raise UsageError(
                    f"url is {url!r} and there is a client, too: leave one of them out"
                )
        self.url, self.content, self._own_client = url, content, client
        self.options: QueryOptions = options or {}
        Query("-", **self.options)  # a mistake must not wait for the first query

    @cached_property
    def client(self) -> Client:
        """The client, opened at its first use; it loads its encoder at the first query."""
        return self._own_client or shared_client(self.url)

    @cached_property
    def _async_client(self) -> AsyncClient:
        return AsyncClient.from_client(self.client)

    def search(self, phrase: str, changes: dict[str, Any]) -> list[RetrievedDocument]:
        """Return the documents for a phrase; `changes` are options that differ this time."""
        return self._convert(self.client.query(phrase, **self._merge(changes)))

    async def search_async(self, phrase: str, changes: dict[str, Any]) -> list[RetrievedDocument]:
        """Return what `search` does, without holding up the event loop."""
        return self._convert(await self._async_client.query(phrase, **self._merge(changes)))

    def describe(self) -> dict[str, Any]:
        """Return the parameters that make such a searcher again; none of them is a secret.

        Raises:
            UsageError: If it has a client of its own, which cannot be saved.
        """
        if self._own_client is not None:
            raise UsageError(
                "a retriever with a client of its own cannot be saved: make it with url= "
                "in place of client=; logins come from the environment"
            )
        return {"url": self.url, "content": self.content, **self.options}

    def _merge(self, changes: dict[str, Any]) -> QueryOptions:
        return cast("QueryOptions", {**self.options, **changes})

    def _convert(self, result: Result) -> list[RetrievedDocument]:
        return [build_document(hit, self.content) for hit in result.hits]
