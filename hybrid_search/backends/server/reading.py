"""All documents of any index on a server, as they are at one point in time: pages behind one another, whatever is written meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.indexes import WHOLE
from hybrid_search.errors import IndexMissingError, IndexStoreError, ServerError

KEEP = "30m"
"""How long a server keeps a point in time after each page: as long as a page may take to be ingested, a server that is away meanwhile included."""

FIRST, MOST = 50, 500
"""Documents of the first page, and of any."""
PAGE_BYTES = 4 * 1024 * 1024
"""About that much in a page, by the mean of the one before."""

SHARD_DOC = (3, 3, 0)
"""From here on OpenSearch has ``_shard_doc``, which tells documents of several shards apart. Elasticsearch had it before our oldest."""

_log = logging.getLogger(__name__)

Hit = Mapping[str, Any]


def hits(server: Server, index: str, query: Mapping[str, Any]) -> Generator[Hit, None, None]:
    """Every document of `index` (also an alias, or several with commas) that fulfils `query`.

    Raises IndexMissingError, and IndexStoreError where the server no longer has the point in time.
    """
    for target, preference, sort in _views(server, index):
        with _opened(server, target, preference) as pit:
            yield from _pages(server, pit, {"query": query, "sort": sort, "track_total_hits": False})


def _views(server: Server, index: str) -> Iterator[tuple[str, str | None, list[str]]]:
    """What to open, of which shard, and an order in which no two documents are equal: ``_doc`` comes first, because the server can go on from it
    without looking at what came before."""
    if server.engine == "elasticsearch":
        yield index, None, ["_shard_doc"]
    elif server.version >= SHARD_DOC:
        yield index, None, ["_doc", "_shard_doc"]
    else:
        for name, shards in _shards(server, index):
            yield from ((name, f"_shards:{number}", ["_doc"]) for number in range(shards))


def _shards(server: Server, index: str) -> list[tuple[str, int]]:
    name = "index.number_of_shards"
    found = _asked(server, index, "GET", f"/{_path(index)}/_settings/{name}", params={"flat_settings": True})
    return [(each, int(held["settings"][name])) for each, held in sorted(found.items())]


@contextmanager
def _opened(server: Server, index: str, preference: str | None) -> Iterator[dict[str, Any]]:
    """A point in time as searches name it; closed in the end, and by the server itself where that fails."""
    path = "_pit" if server.engine == "elasticsearch" else "_search/point_in_time"
    answer = _asked(server, index, "POST", f"/{_path(index)}/{path}", params={"keep_alive": KEEP, "preference": preference})
    pit = {"id": answer["id" if server.engine == "elasticsearch" else "pit_id"], "keep_alive": KEEP}
    try:
        yield pit
    finally:
        try:
            server.request("DELETE", f"/{path}", body={"id": pit["id"]} if server.engine == "elasticsearch" else {"pit_id": [pit["id"]]})
        except ServerError as error:
            _log.info("a point in time was not closed, and ends by itself in %s: %s", KEEP, error)


def _pages(server: Server, pit: dict[str, Any], body: dict[str, Any]) -> Iterator[Hit]:
    size = FIRST
    while found := _page(server, {**body, "size": size, "pit": pit}, pit):
        held = sum(len(str(hit)) for hit in found)
        size = max(1, min(MOST, PAGE_BYTES * len(found) // held))
        body["search_after"] = found[-1]["sort"]
        yield from found


def _page(server: Server, body: Mapping[str, Any], pit: dict[str, Any]) -> Sequence[Hit]:
    try:
        answer = server.request("POST", "/_search", params=WHOLE, body=body)
    except ServerError as error:
        if error.status != 404:
            raise
        raise IndexStoreError(
            f"{server} no longer has the point in time that was read (it was started anew, or a page took over {KEEP}): run the same command again, "
            "which skips what is unchanged"
        ) from error
    pit["id"] = answer.get("pit_id", pit["id"])
    found: Sequence[Hit] = answer["hits"]["hits"]
    return found


def mapped(server: Server, index: str) -> list[Mapping[str, Any]]:
    """The properties of each index behind `index`. Raises IndexMissingError."""
    found = _asked(server, index, "GET", f"/{_path(index)}/_mapping")
    return [each["mappings"].get("properties", {}) for each in found.values()]


def _asked(server: Server, index: str, method: str, path: str, **asked: Any) -> Any:
    try:
        return server.request(method, path, **asked)
    except ServerError as error:
        if error.status == 404:
            raise IndexMissingError(f"there is no index {index!r} on {server} to read from: see GET /_cat/indices for those there are") from error
        raise


def _path(index: str) -> str:
    return quote(index, safe=",*")
