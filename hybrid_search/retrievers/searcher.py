"""`Searcher`: asks one client for hits, as documents that every framework can take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from hybrid_search.api import shared_client
from hybrid_search.async_client import AsyncClient
from hybrid_search.client import Client
from hybrid_search.credentials import refuse_secrets
from hybrid_search.errors import UsageError
from hybrid_search.parameters import check_choice
from hybrid_search.search.hit import Hit
from hybrid_search.search.query import Query, QueryOptions

OWN_KEY = "hybrid_search"
"""The key of the metadata that has the spans, offsets and scores; all others are the caller's."""

PASSAGE, TURN = "passage", "turn"
CONTENTS = (PASSAGE, TURN)
"""The kinds of content of a document."""


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A hit as frameworks take it: `text` is its passage, or the turn around its best span.

    The id is that of the passage, unique in its index: ``<document id>#<passage>``. The content
    begins at `start` in the document, in code points. The metadata has the caller's own keys, and
    under `OWN_KEY` all numbers and spans of the hit.
    """

    id: str
    document_id: str
    text: str
    start: int
    metadata: dict[str, Any]
    score: float

    @property
    def end(self) -> int:
        """The end of the content in the document."""
        return self.start + len(self.text)


class Searcher:
    """Asks one client with the same options each time: that of `url` in this process, or `client`.

    Raises:
        UsageError: If a value is not allowed, the URL holds a secret, or there are both a URL and a
            client.
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
        result = self.client.query(phrase, **self._merge(changes))
        return [build_document(hit, self.content) for hit in result]

    async def search_async(self, phrase: str, changes: dict[str, Any]) -> list[RetrievedDocument]:
        """Return what `search` does, without holding up the event loop."""
        result = await self._async_client.query(phrase, **self._merge(changes))
        return [build_document(hit, self.content) for hit in result]

    def describe(self) -> dict[str, Any]:
        """Return the parameters that make such a searcher again; none of them is a secret."""
        if self._own_client is not None:
            raise UsageError(
                "a retriever with a client of its own cannot be saved: make it with url= "
                "in place of client=; logins come from the environment"
            )
        return {"url": self.url, "content": self.content, **self.options}

    def _merge(self, changes: dict[str, Any]) -> QueryOptions:
        return cast("QueryOptions", {**self.options, **changes})


def build_document(hit: Hit, content: str) -> RetrievedDocument:
    """Return a hit as a document; `content` is one of `CONTENTS`.

    `OWN_KEY` holds the hit as `query --json` prints it, with its turns. Its ``start`` and ``end``
    are the content's, so that ``text[span["start"] - start :]`` begins with the words of a span in
    the content.
    """
    start, text = _select_turn(hit) if content == TURN else (hit.start, hit.text)
    values = hit.to_dict(texts=True) | {"start": start, "end": start + len(text)}
    del values["text"]
    metadata = dict(values.pop("metadata"))
    return RetrievedDocument(
        id=f"{hit.id}#{hit.passage}",
        document_id=hit.id,
        text=text,
        start=start,
        metadata={**metadata, OWN_KEY: values},
        score=hit.score,
    )


def _select_turn(hit: Hit) -> tuple[int, str]:
    """Return start and text of the turn around the best span in the hit's passage.

    It is cut to the passage. Without such a span, as with ``spans=0``, it is the whole passage.
    """
    end_of_text = hit.start + len(hit.text)
    for span in hit.spans:
        if hit.start <= span.start and span.end <= end_of_text:
            for turn in hit.turns:
                if turn.turn == span.turn:
                    start = max(turn.start, hit.start)
                    return start, hit.text[start - hit.start : turn.end - hit.start]
    return hit.start, hit.text
