"""An index that another program wrote on a server, as a source of documents.

All documents are read as of one moment, by the server's scroll API, which OpenSearch and
Elasticsearch have in all supported versions. Later writes are not visible.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from typing import Any, NotRequired
from urllib.parse import quote

from pydantic import NonNegativeInt

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.aliases import COMPLETE_RESULTS
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT, Items, Shape, make_object
from hybrid_search.errors import HybridSearchError, IndexMissingError, IndexStoreError, ServerError
from hybrid_search.ingest.sources.read_options import AS_IS, ReadOptions
from hybrid_search.ingest.sources.records import CONTENT, Record, build_record, find
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine

HIT_ID = "_id"

KEEP = "30m"
"""How long a server keeps a scroll after each page: as long as a page may take to be ingested."""
PAGE = 50
"""Documents in a page. Texts may be long, and encoding them takes longer than a round trip."""

REMEDY = "run the same command again, which skips what is unchanged"

_log = logging.getLogger(__name__)


_Hit = make_object(
    _index=str,
    _id=str,
    _source=NotRequired[dict[str, Any]],
    _seq_no=NotRequired[NonNegativeInt],
    _primary_term=NotRequired[NonNegativeInt],
)
_Hits = make_object(total=make_object(value=NonNegativeInt), hits=Items[_Hit])
_PAGE = Shape[answers.Answer](make_object(_scroll_id=str, hits=_Hits))

ServerHit = Mapping[str, Any]


def read_index(
    server: Server, index: str, options: ReadOptions = AS_IS
) -> Generator[SourceLine, None, None]:
    """Yield all documents of an index as of one point in time.

    `index` may also be an alias, or several names separated by commas. Without columns, the id of a
    document is its ``_id``, and its text is the field ``text``; a list there is taken as turns. All
    other fields are metadata; those called id, text or turns are renamed to ``source_id`` etc.

    Until the generator is closed or read to the end, the server keeps the point in time. Raises
    IndexMissingError if there is no such index, ServerError if the server fails.
    """
    named = {"id": HIT_ID, **options.columns}
    columns = named if {*CONTENT} & named.keys() else {**named, "text": "text"}
    turns_columns = {"turns" if key == "text" else key: name for key, name in columns.items()}

    def read_hit(number: int, hit: ServerHit) -> Record:
        own_id = {HIT_ID: hit["_id"]} if columns["id"] == HIT_ID else {}
        return Record(number, fields={**hit.get("_source", {}), **own_id})

    body = {"query": {"match_all": {}}, "sort": ["_doc"], "size": PAGE}
    with closing(iterate_hits(server, index, body)) as hits:
        if options.rows == "turn":
            records = map(read_hit, count(1), hits)
            for record in group_calls(records, replace(options, columns=columns)):
                yield record.as_line(index)
            return
        for number, hit in enumerate(hits, 1):
            record = read_hit(number, hit)
            text = find(record.fields or {}, columns.get("text", ""))
            own = turns_columns if isinstance(text, list) and "turns" not in columns else columns
            built = build_record(record, replace(options, columns=own))
            yield built.as_line(f"{hit['_index']}/{hit['_id']}")


def iterate_hits(
    server: Server, index: str, body: Mapping[str, Any]
) -> Generator[ServerHit, None, None]:
    """Yield every document of `index` that a search finds, as of one moment.

    Raises:
        IndexStoreError: If the server no longer has the scroll, or an answer of it was lost.
    """
    params = {"scroll": KEEP, **COMPLETE_RESULTS}
    missing = IndexMissingError(
        f"there is no index {index!r} on {server} to read from: "
        "GET /_cat/indices lists those that exist"
    )
    forgotten = IndexStoreError(
        f"{server} no longer has the moment of the index that was read (the server was "
        f"restarted, or a page took over {KEEP}): {REMEDY}"
    )
    page = _fetch(server, f"/{quote(index, safe=',*')}/_search", body, missing, params)
    remaining = page["hits"]["total"]["value"]
    try:
        while hits := page["hits"]["hits"]:
            remaining -= len(hits)
            yield from hits
            scroll = {"scroll": KEEP, "scroll_id": page["_scroll_id"]}
            page = _fetch(server, "/_search/scroll", scroll, forgotten)
    finally:
        _close(server, page["_scroll_id"])
    if remaining > 0:  # an answer that is lost on the way cannot be had again
        raise IndexStoreError(
            f"{server} left out {remaining} documents of {index!r}, as its connection broke or a "
            f"part of it was away: {REMEDY}"
        )


def _fetch(
    server: Server,
    path: str,
    body: Mapping[str, Any],
    not_found: HybridSearchError,
    params: Mapping[str, Any] | None = None,
) -> answers.Answer:
    try:
        page: answers.Answer = server.request(
            "POST", path, params=params, body=body, read=_PAGE.read
        )
    except ServerError as error:
        if error.status != 404:
            raise
        raise not_found from error
    return page


def _close(server: Server, scroll_id: str) -> None:
    try:
        server.request("DELETE", "/_search/scroll", body={"scroll_id": scroll_id}, read=OBJECT.read)
    except ServerError as error:
        _log.info("a scroll was not closed, and ends by itself in %s: %s", KEEP, error)
