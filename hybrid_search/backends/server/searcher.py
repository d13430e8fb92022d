"""Sends searches of one index, and translates errors for the caller."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.server import aliases, answers, heads
from hybrid_search.backends.server.reach import BATCH_PASSAGES
from hybrid_search.backends.server.request_bodies import split_batches
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.errors import reason
from hybrid_search.backends.server.transport.shape import ShapeError
from hybrid_search.backends.types import Key
from hybrid_search.errors import ServerError, UsageError

LIMITS = ("maxClauseCount", "max_terms_count")
"""Names in the errors for more than 1,024 words in a phrase, or 65,536 values in a filter."""

Hits = list[dict[str, Any]]


class Searcher:
    """Sends searches to one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # to the same copies of shards: replicas that differ in deleted passages differ in scores
        self._params = {"preference": secrets.token_hex(8), **aliases.COMPLETE_RESULTS}

    def search(self, index: str, body: Mapping[str, Any]) -> answers.Answer:
        """Return the answer to one search of `index`.

        Raises IndexMissingError if there is none, UsageError if it has too many words or values.
        """
        with self._translate_errors(index):
            return aliases.search(self._server, check_index_name(index), body, self._params)

    def search_batches(
        self, index: str, keys: Sequence[Key], build_body: Callable[[list[Key]], Mapping[str, Any]]
    ) -> Hits:
        """Return the hits of the searches for passages, a request for each batch of `keys`."""
        bodies = map(build_body, split_batches(keys, BATCH_PASSAGES))
        return [hit for body in bodies for hit in self.search(index, body)["hits"]["hits"]]

    def search_together(
        self,
        index: str,
        bodies: Mapping[str, Mapping[str, Any]],
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Hits]:
        """Return the hits of several searches of `index` by their names, sent in one request.

        `elsewhere` names the index of each search that is of another one. The request is sent again
        if the server was too busy for one. Raises what `search` does.
        """
        indexes = {name: check_index_name(elsewhere.get(name, index)) for name in bodies}
        headers = ({"index": indexes[name], **self._params} for name in bodies)
        lines = [line for pair in zip(headers, bodies.values(), strict=True) for line in pair]

        def read(answer: Any) -> dict[str, Hits]:
            responses = answers.RESPONSES.read(answer)["responses"]
            for response in responses:
                if "error" in response:
                    message = f"{self._server} could not search {index!r}: {reason(response)}"
                    raise ServerError(message, answers.FAILURE.read(response)["status"])
            if len(responses) != len(bodies):
                raise ShapeError(f"responses: {len(responses)}, not {len(bodies)}")
            return {
                name: answers.read_search(body)(response)["hits"]["hits"]
                for (name, body), response in zip(bodies.items(), responses, strict=True)
            }

        with self._translate_errors(index):
            hits: dict[str, Hits] = self._server.request(
                "POST", "/_msearch", lines=lines, binary=True, read=read
            )
        return hits

    @contextmanager
    def _translate_errors(self, index: str) -> Iterator[None]:
        """Raise the error for a missing index, or for a query that is too large."""
        try:
            yield
        except ServerError as error:
            if error.status == 404:
                raise heads.build_missing_error(self._server, index) from error
            if error.status == 400 and any(limit in str(error) for limit in LIMITS):
                raise UsageError(
                    f"the query is too large for the server: {error}. "
                    "Use a shorter phrase, or fewer values in where"
                ) from error
            raise
