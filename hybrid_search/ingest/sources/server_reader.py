"""Reader of all documents of an index on a server, page by page, as of one point in time.

Later writes are not visible.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.aliases import COMPLETE_RESULTS
from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.server.transport.errors import UNUSABLE
from hybrid_search.backends.server.transport.shape import OBJECT
from hybrid_search.errors import IndexMissingError, IndexStoreError, ServerError

KEEP = "30m"
"""How long a server keeps a point in time after each page: as long as a page may take to be
ingested, a server that is away meanwhile included.
"""

FIRST, MOST = 50, 500
"""Number of documents in the first page, and the maximum of any page."""
PAGE_BYTES = 4 * 1024 * 1024
"""Target bytes of a page; its number of documents follows from the mean of the previous page."""

SHARDS = "index.number_of_shards"

_log = logging.getLogger(__name__)

ServerHit = Mapping[str, Any]


def iterate_hits(
    server: Server, index: str, query: Mapping[str, Any]
) -> Generator[ServerHit, None, None]:
    """Yield every document of `index` that matches `query`.

    `index` may also be an alias, or several names separated by commas. Raises IndexMissingError if
    there is no such index, IndexStoreError if the server no longer has the point in time.
    """
    for target, preference, sort in _views(server, index):
        with _open_point_in_time(server, target, preference) as pit:
            yield from _iterate_pages(
                server, pit, {"query": query, "sort": sort, "track_total_hits": False}
            )


def _views(server: Server, index: str) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield (index to open, shard preference, sort order) for each part that is read separately.

    Within a part the sort order is total.
    """
    order = find_dialect(server.engine).choose_order(server.version)
    if order:
        yield index, None, order
    else:
        for name, shards in _shard_counts(server, index):
            yield from ((name, f"_shards:{number}", ["_doc"]) for number in range(shards))


def _shard_counts(server: Server, index: str) -> list[tuple[str, int]]:
    settings_by_index = _request_index(
        server,
        index,
        "GET",
        f"/{_path(index)}/_settings/{SHARDS}",
        params={"flat_settings": True},
        read=answers.SHARDS.read,
    )
    return [
        (index_name, index_settings["settings"][SHARDS])
        for index_name, index_settings in sorted(settings_by_index.items())
    ]


@contextmanager
def _open_point_in_time(
    server: Server, index: str, preference: str | None
) -> Iterator[dict[str, Any]]:
    """Yield a point in time for searches, and close it at the end of the block.

    If closing fails, it expires by itself.
    """
    dialect = find_dialect(server.engine)
    answer = _request_index(
        server,
        index,
        "POST",
        f"/{_path(index)}/{dialect.pit_path}",
        params={"keep_alive": KEEP, "preference": preference},
        read=answers.point_in_time(dialect.pit_key).read,
    )
    pit = {"id": answer[dialect.pit_key], "keep_alive": KEEP}
    try:
        yield pit
    finally:
        try:
            server.request(
                "DELETE",
                f"/{dialect.pit_path}",
                body=dialect.build_pit_deletion(pit["id"]),
                read=OBJECT.read,
            )
        except ServerError as error:
            _log.info("a point in time was not closed, and ends by itself in %s: %s", KEEP, error)


def _iterate_pages(
    server: Server, pit: dict[str, Any], body: dict[str, Any]
) -> Iterator[ServerHit]:
    size = FIRST
    while hits := _fetch_page(server, {**body, "size": size, "pit": pit}, pit):
        page_bytes = sum(len(str(hit)) for hit in hits)
        size = max(1, min(MOST, PAGE_BYTES * len(hits) // page_bytes))
        if hits[-1]["sort"] == body.get("search_after"):
            raise ServerError(
                f"{server} gave the same page twice: is a cache in front of it?", UNUSABLE
            )
        body["search_after"] = hits[-1]["sort"]
        yield from hits


def _fetch_page(
    server: Server, body: Mapping[str, Any], pit: dict[str, Any]
) -> Sequence[ServerHit]:
    try:
        answer = server.request(
            "POST", "/_search", params=COMPLETE_RESULTS, body=body, read=answers.FOREIGN_PAGE.read
        )
    except ServerError as error:
        if error.status != 404:
            raise
        raise IndexStoreError(
            f"{server} no longer has the point in time that was read (the server was restarted, "
            f"or a page took over {KEEP}): run the same command again, which skips what is "
            "unchanged"
        ) from error
    pit["id"] = answer.get("pit_id", pit["id"])
    hits: Sequence[ServerHit] = answer["hits"]["hits"]
    return hits


def fetch_properties(server: Server, index: str) -> list[Mapping[str, Any]]:
    """Return the properties of each index behind `index`; raise IndexMissingError if none."""
    mappings_by_index = _request_index(
        server, index, "GET", f"/{_path(index)}/_mapping", read=answers.FOREIGN_MAPPINGS.read
    )
    return [
        index_mapping["mappings"].get("properties", {})
        for index_mapping in mappings_by_index.values()
    ]


def _request_index(server: Server, index: str, method: str, path: str, **options: Any) -> Any:
    try:
        return server.request(method, path, **options)
    except ServerError as error:
        if error.status == 404:
            raise IndexMissingError(
                f"there is no index {index!r} on {server} to read from: "
                "GET /_cat/indices lists those that exist"
            ) from error
        raise


def _path(index: str) -> str:
    return quote(index, safe=",*")
