"""Reader of all documents of an index on a server, as of one moment, by its scroll API.

OpenSearch and Elasticsearch have it in all supported versions. Later writes are not visible.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from typing import Any, NotRequired
from urllib.parse import quote

from pydantic import NonNegativeInt

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.aliases import COMPLETE_RESULTS
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT, Items, Shape, make_object
from hybrid_search.errors import IndexMissingError, IndexStoreError, ServerError

KEEP = "30m"
"""How long a server keeps a scroll after each page: as long as a page may take to be ingested, a
server that is away meanwhile included.
"""
PAGE = 50
"""Documents in a page. Texts may be long, and encoding them takes longer than a round trip."""

REMEDY = "run the same command again, which skips what is unchanged"

_log = logging.getLogger(__name__)


_Hit = make_object(_index=str, _id=str, _source=NotRequired[dict[str, Any]])
_Hits = make_object(total=make_object(value=NonNegativeInt), hits=Items[_Hit])
_PAGE = Shape[answers.Answer](make_object(_scroll_id=str, hits=_Hits))

ServerHit = Mapping[str, Any]


def iterate_hits(
    server: Server, index: str, query: Mapping[str, Any]
) -> Generator[ServerHit, None, None]:
    """Yield every document of `index` that matches `query`.

    `index` may also be an alias, or several names separated by commas. Raises IndexMissingError if
    there is no such index.

    Raises:
        IndexStoreError: If the server no longer has the scroll, or an answer of it was lost.
    """
    body = {"query": query, "sort": ["_doc"], "size": PAGE}
    params = {"scroll": KEEP, **COMPLETE_RESULTS}
    page = _request_index(
        server, index, "POST", "_search", params=params, body=body, read=_PAGE.read
    )
    remaining = page["hits"]["total"]["value"]
    try:
        while hits := page["hits"]["hits"]:
            remaining -= len(hits)
            yield from hits
            page = _fetch_next(server, page["_scroll_id"])
    finally:
        _close(server, page["_scroll_id"])
    if remaining > 0:  # an answer that is lost on the way cannot be had again
        raise IndexStoreError(
            f"{server} left out {remaining} documents of {index!r}, as its connection broke or a "
            f"part of it was away: {REMEDY}"
        )


def _fetch_next(server: Server, scroll_id: str) -> answers.Answer:
    body = {"scroll": KEEP, "scroll_id": scroll_id}
    try:
        page: answers.Answer = server.request("POST", "/_search/scroll", body=body, read=_PAGE.read)
    except ServerError as error:
        if error.status != 404:
            raise
        raise IndexStoreError(
            f"{server} no longer has the moment of the index that was read (the server was "
            f"restarted, or a page took over {KEEP}): {REMEDY}"
        ) from error
    return page


def _close(server: Server, scroll_id: str) -> None:
    try:
        server.request("DELETE", "/_search/scroll", body={"scroll_id": scroll_id}, read=OBJECT.read)
    except ServerError as error:
        _log.info("a scroll was not closed, and ends by itself in %s: %s", KEEP, error)


def fetch_properties(server: Server, index: str) -> list[Mapping[str, Any]]:
    """Return the properties of each index behind `index`; raise IndexMissingError if none."""
    read = answers.FOREIGN_MAPPINGS.read
    mappings_by_index = _request_index(server, index, "GET", "_mapping", read=read)
    return [item["mappings"].get("properties", {}) for item in mappings_by_index.values()]


def _request_index(server: Server, index: str, method: str, path: str, **options: Any) -> Any:
    try:
        return server.request(method, f"/{quote(index, safe=',*')}/{path}", **options)
    except ServerError as error:
        if error.status == 404:
            raise IndexMissingError(
                f"there is no index {index!r} on {server} to read from: "
                "GET /_cat/indices lists those that exist"
            ) from error
        raise
