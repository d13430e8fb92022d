"""Lists every passage of an index on a server, page by page, ordered by document."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hybrid_search.backends.server import aliases, heads, passage_codec, request_bodies
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.errors import UNUSABLE
from hybrid_search.backends.types import (
    Fault,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    ScannedPassage,
    find_codes_fault,
)
from hybrid_search.errors import ServerError

PAGE_PASSAGES = 5000
"""Passages in a page without texts and word codes: 1 MB."""

PAGE_CODES = 200
"""Passages in a page with word codes: 7 MB."""

PAGE_CONTENTS = 1000
"""Passages in a page with texts and metadata: 1 MB."""

COLUMNS = ["document_id", "ordinal", "passages", "source_hash"]

SCANNED_COLUMNS = [*request_bodies.CODES["docvalue_fields"], "start"]
NO_VECTORS = Fault("vectors", "none of its spans has a vector on the server")
NO_CODES = Fault(
    "codes",
    "its word codes are missing: a partial update or a copy by the server loses them, since "
    "they are not in _source",
)

EVERYTHING: Mapping[str, Any] = {"match_all": {}}

UNFINDABLE = {
    "bool": {
        "filter": [{"range": {"span_count": {"gt": 0}}}],
        "must_not": [{"nested": {"path": "spans", "query": {"exists": {"field": "spans.vector"}}}}],
    }
}
"""Matches passages that have spans but no vector: the span leg never finds them."""

CODELESS = {"bool": {"must_not": [{"exists": {"field": "tokens"}}]}}
"""Matches passages that were written without word codes, which no search can score."""


def iterate_hits(
    server: Server, name: str, overrides: Mapping[str, Any], page: int
) -> Iterator[dict[str, Any]]:
    """Yield the hits of all passages of an index or alias, `page` of them per request.

    `overrides` of the body say what is returned of a hit, and which passages.

    Raises:
        ServerError: If a page comes again, which would have no end, or a passage within a page.
    """
    body: dict[str, Any] = {"size": page, "sort": ["document_id", "ordinal"], **overrides}
    while page_hits := aliases.search(server, name, body)["hits"]["hits"]:
        # twice in a row is no fault of the answer: two passages were stored under one key
        places = [place for place, _ in itertools.groupby(str(hit["sort"]) for hit in page_hits)]
        if len(set(places)) < len(places):
            raise ServerError(
                f"{server} gave a passage of {name!r} twice in one listing: "
                "is a proxy in front of it that changes answers?",
                UNUSABLE,
            )
        yield from page_hits
        last_sort = page_hits[-1]["sort"]
        if last_sort == body.get("search_after"):
            raise ServerError(
                f"{server} gave the same page of {name!r} twice: is a cache in front of it?",
                UNUSABLE,
            )
        if len(page_hits) < page:
            return
        body["search_after"] = last_sort


def list_keys(server: Server, index: heads.ServerIndex, query: Mapping[str, Any]) -> list[str]:
    """Return the keys of the passages that match `query`, document by document in their order."""
    body = {**request_bodies.KEYS, "query": index.narrow(query)}
    hits = iterate_hits(server, index.name, body, PAGE_PASSAGES)
    return [passage_codec.hit_key(hit) for hit in hits]


def iterate_passages(
    server: Server, index: heads.ServerIndex, *, full: bool
) -> Iterator[ListedPassage]:
    """Yield all passages with the faults that a search finds, and with `full` those of codes."""
    unfindable_keys = set(list_keys(server, index, UNFINDABLE))
    codeless_keys = set(list_keys(server, index, CODELESS))
    columns = [*COLUMNS, "tokens"] if full else COLUMNS
    query = index.narrow(EVERYTHING)
    fields = {**request_bodies.KEYS, "docvalue_fields": columns, "query": query}
    page = PAGE_CODES if full else PAGE_PASSAGES
    for hit in iterate_hits(server, index.name, fields, page):
        key = passage_codec.hit_key(hit)
        faults = [NO_VECTORS] if key in unfindable_keys else []
        if key in codeless_keys:  # what loses the codes loses the vectors, too
            faults = [NO_CODES]
        elif full:
            fault = find_codes_fault(passage_codec.decode_codes(hit), index.spec.dimension)
            faults += [fault] if fault else []
        document_id, ordinal, passages, source_hash = (hit["fields"][name][0] for name in COLUMNS)
        yield ListedPassage(key, document_id, ordinal, passages, source_hash, tuple(faults))


def scan_codes(
    server: Server,
    index: heads.ServerIndex,
    after: Position = None,
    written_since: datetime | None = None,
) -> Iterator[ScannedPassage]:
    """Yield the passages behind `after`, or those of them written since a time, with codes."""
    query = EVERYTHING
    if written_since is not None:
        query = {"range": {"indexed_at": {"gte": written_since.isoformat()}}}
    body = {**request_bodies.KEYS, "docvalue_fields": SCANNED_COLUMNS, "query": index.narrow(query)}
    if after is not None:
        body["search_after"] = after
    for hit in iterate_hits(server, index.name, body, PAGE_CODES):
        names = ("document_id", "ordinal", "start")
        document_id, ordinal, start = (hit["fields"][name][0] for name in names)
        key, codes = passage_codec.hit_key(hit), passage_codec.decode_codes(hit)
        yield ScannedPassage(key, document_id, ordinal, start, codes, hit["sort"])


def iterate_stored(server: Server, index: heads.ServerIndex) -> Iterator[tuple[str, str]]:
    """Yield the id of the document of each passage, and all that its source has, as JSON."""
    # the texts of other languages are in no source, but are those of the passages
    body = {"_source": {"excludes": []}, "query": index.narrow(EVERYTHING)}
    for hit in iterate_hits(server, index.name, body, PAGE_CODES):
        document_id, _ = passage_codec.parse_passage_id(hit["_id"])
        yield document_id, json.dumps(hit["_source"], ensure_ascii=False)


def read_documents(
    server: Server, index: heads.ServerIndex, ids: Sequence[str]
) -> dict[str, dict[Key, PassageContent]]:
    """Return the contents of the passages of documents, in order, as far as they exist."""
    body = {
        "_source": request_bodies.CONTENT_FIELDS,
        "track_total_hits": False,
        "query": index.narrow({"terms": {"document_id": list(ids)}}),
    }
    documents: dict[str, dict[Key, PassageContent]] = {}
    for hit in iterate_hits(server, index.name, body, PAGE_CONTENTS):
        document_id, _ = passage_codec.parse_passage_id(hit["_id"])
        contents = documents.setdefault(document_id, {})
        contents[hit["_id"]] = passage_codec.build_content(hit)
    return documents
