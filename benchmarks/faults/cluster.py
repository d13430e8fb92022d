"""A server that answers rightly, as the bad answers need one to differ from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from hybrid_search.backends.server import passage_codec
from tests.helpers.fake_server import (
    HELLO,
    HttpRequest,
    Reply,
    ScriptedServer,
    make_bulk_response,
)
from tests.helpers.tiny_encoder import make_entries, make_spec

NAME = "calls-000001"
TEXTS = {
    "call-1": "I want my money back, the kettle leaks.",
    "call-2": "My card was declined and the money is gone.",
    "call-3": "Where is my refund request?",
}
COLUMNS = ("document_id", "ordinal", "tokens", "source_hash", "passages")

Json = dict[str, Any]
Script = Callable[[HttpRequest], Any]
BadAnswer = Callable[[HttpRequest, Reply], Any]
"""Makes the bad reply to a request out of the right one."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """Bytes that are sent as they are, `pause` seconds after one another, before a hang-up."""

    pieces: Iterable[bytes]
    pause: float = 0.0


class RawServer(ScriptedServer):
    """A scripted server that can break the protocol too."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        # else each answer waits 40 ms for the client to acknowledge its head
        handler: Any = self._server.RequestHandlerClass
        handler.disable_nagle_algorithm = True

    def send(self, handler: BaseHTTPRequestHandler, reply: Any) -> None:
        """Send a reply; the client may hang up on a raw one."""
        if not isinstance(reply, RawReply):
            super().send(handler, reply)
            return
        handler.close_connection = True
        for piece in reply.pieces:
            handler.wfile.write(piece)
            time.sleep(reply.pause)


def _build_hit(id: str, text: str) -> Json:
    (entry,) = make_entries({"id": id, "text": text, "sector": "bank"})
    fields = passage_codec.build_source(entry, make_spec(), "2026-01-01T00:00:00+00:00")
    source = json.loads(passage_codec.to_json(fields))
    return {
        "_index": NAME,
        "_id": passage_codec.passage_id(id, 0),
        "_score": 1.0,
        "_source": source,
        "fields": {column: [source[column]] for column in COLUMNS},
        "highlight": {"text": [source["text"]]},
        "sort": [id, 0],
    }


class Cluster:
    """One index behind the alias ``calls``; every search finds all its passages."""

    def __init__(self, engine: str) -> None:
        self._hello = HELLO[engine]
        self._hits = [_build_hit(document_id, text) for document_id, text in TEXTS.items()]

    def __call__(self, request: HttpRequest) -> Reply:
        """Return the right answer."""
        stage = find_stage(request)
        if stage == "bulk":
            return Reply(body=make_bulk_response(request, 201))
        bodies: dict[str, Callable[[], Any]] = {
            "hello": lambda: self._hello,
            "mapping": lambda: {NAME: {"mappings": _build_mapping()}},
            "settings": lambda: {NAME: {"settings": _SETTINGS, "defaults": {}}},
            "msearch": lambda: {"responses": self._answer_each(request.body.splitlines()[1::2])},
            "search": lambda: self._answer(json.loads(request.body)),
            "counts": lambda: self._answer(json.loads(request.body)),
        }
        return Reply(body=bodies[stage]() if stage in bodies else {"_shards": {"failed": 0}})

    def _answer_each(self, bodies: Sequence[bytes]) -> list[Json]:
        return [self._answer(json.loads(body)) for body in bodies]

    def _answer(self, body: Mapping[str, Any]) -> Json:
        ids = _find_ids(body)
        hits = [hit for hit in self._hits if ids is None or hit["_id"] in ids][: body["size"]]
        query = body.get("query", {}).get("bool", {})
        if "search_after" in body or {"should", "must_not"} & set(query):
            hits = []  # a second page, passages without vectors, or those of an older version
        return {
            "took": 1,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": hits},
            "aggregations": {"documents": {"buckets": []}},
            "status": 200,
        }


def _find_ids(body: Mapping[str, Any]) -> list[str] | None:
    """Return the ids that a search is limited to, None if it is not."""
    query = body.get("query", {})
    filters = query.get("bool", {}).get("filter", [])
    for clause in (query, *filters):
        if "ids" in clause:
            ids: list[str] = clause["ids"]["values"]
            return ids
    return None


_SETTINGS = {
    "index.mapping.nested_objects.limit": "10000",
    "index.number_of_shards": "1",
    "index.number_of_replicas": "0",
}


def _build_mapping() -> Json:
    return {
        "_meta": {"hybrid_search": asdict(make_spec()), "options": {}},
        "properties": {"metadata": {"properties": {"sector": {"type": "keyword"}}}},
    }


def find_stage(request: HttpRequest) -> str:
    """Return what a request is for: hello, mapping, settings, msearch, search, counts or bulk."""
    path = request.target.partition("?")[0]
    if "/_search" in path and b'"aggs"' in request.body:
        return "counts"
    names = {"/_mapping": "mapping", "/_settings": "settings", "/_msearch": "msearch",
             "/_search": "search", "/_bulk": "bulk"}  # fmt: skip
    if path == "/":
        return "hello"
    return next((stage for part, stage in names.items() if part in path), "other")
