"""A cluster with the index ``calls`` of two documents, which answers each request of this project.

What is sent to it changes nothing: it always has the same passages, in every version of the index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import unquote

import cbor2

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings, passage_codec, scan
from hybrid_search.backends.server.passage_codec import CLOSE, OPEN
from tests.helpers.fake_server import HELLO, HttpRequest, Reply, make_bulk_response
from tests.helpers.server_index import GRAPH
from tests.helpers.tiny_encoder import make_entries, make_spec

DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"id": "kettle", "text": "I want my money back, the kettle leaks.", "sector": "shop"},
    {"id": "loan", "text": "The bank wants its money back.", "sector": "bank"},
)
KEY = ("document_id", "ordinal")
WRITTEN_AT = "2026-01-01T00:00:00+00:00"
INDEX, NEXT_INDEX = "calls-000001", "calls-000002"
CBOR = "application/cbor"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request to a server and the right answer to it, before that is encoded."""

    engine: str
    request: HttpRequest
    answer: Any
    has_cbor: bool = True

    def encode(self, answer: Any) -> Reply:
        """Return the reply with an answer, in the format that was requested."""
        if self.has_cbor and "cbor" in self.request.headers.get("accept", ""):
            return Reply(body=cbor2.dumps(answer), headers={"content-type": CBOR})
        return Reply(body=json.dumps(answer).encode())


ANSWERS_BY_ACTION: Json = {
    "_stats/store": {"_all": {"primaries": {"store": {"size_in_bytes": 0}}}},
    "_refresh": {"_shards": {"failed": 0}},
}


@dataclass
class FakeCluster:
    """A script for `ScriptedServer`; without `has_cbor` all its answers are JSON."""

    engine: str
    has_cbor: bool = True
    hits: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        entries = [entry for document in DOCUMENTS for entry in make_entries(document)]
        for entry in entries:
            fields = passage_codec.build_source(entry, make_spec(), WRITTEN_AT, GRAPH)
            source = json.loads(passage_codec.to_json(fields))
            columns = (*KEY, "tokens", "passages", "source_hash")
            self.hits.append(
                {
                    "_index": INDEX,
                    "_id": passage_codec.passage_id(source["document_id"], source["ordinal"]),
                    "_score": 1.5,
                    "_source": source,
                    "fields": {column: [source[column]] for column in columns},
                    "sort": [source["document_id"], source["ordinal"]],
                    "highlight": {"text": [source["text"].replace("back", f"{OPEN}back{CLOSE}")]},
                }
            )

    def __call__(self, request: HttpRequest) -> Reply:
        exchange = self.prepare(request)
        return exchange.encode(exchange.answer)

    def prepare(self, request: HttpRequest) -> Exchange:
        """Return a request with its right answer."""
        return Exchange(self.engine, request, self.answer(request), self.has_cbor)

    def answer(self, request: HttpRequest) -> Any:
        """Return the answer to a request; True or False for HEAD."""
        path = unquote(request.target.partition("?")[0])
        name, _, action = path.strip("/").partition("/")
        if request.method == "HEAD":
            return True
        if path.endswith("/_bulk"):
            return make_bulk_response(request)
        if request.method in ("PUT", "DELETE") or path == "/_aliases":
            return {"acknowledged": True}
        if path in (whole := self._answers_by_path()):
            return whole[path]
        if path == "/_msearch":
            bodies = [json.loads(line) for line in request.body.splitlines()[1::2]]
            return {"responses": [self.search(body) for body in bodies]}
        if request.method == "GET" and not action:
            return {INDEX: {"mappings": self.mapping(), "aliases": {"calls": {}}}}
        if action == "_mapping":
            return {name if name == NEXT_INDEX else INDEX: {"mappings": self.mapping()}}
        if action.startswith("_settings"):
            return {INDEX: {"settings": SETTINGS, "defaults": {}}}
        if action in ANSWERS_BY_ACTION:
            return ANSWERS_BY_ACTION[action]
        return self.search(json.loads(request.body))

    def _answers_by_path(self) -> Json:
        return {
            "/": HELLO[self.engine],
            "/_alias": {INDEX: {"aliases": {"calls": {}}}},
            "/_all/_mapping": {
                INDEX: {"mappings": {"_meta": {"hybrid_search": {"schema": make_spec().schema}}}}
            },
            "/_cat/plugins": [{"component": "opensearch-knn"}],
            "/_cluster/health": {
                "status": "green",
                "number_of_data_nodes": 1,
                "unassigned_shards": 0,
            },
            "/_plugins/_security/authinfo": {"roles": ["all_access"]},
            "/_security/user/_has_privileges": {
                "index": {name: dict.fromkeys(PRIVILEGES, True) for name in ("calls", "calls-*")},
                "cluster": {"cluster:monitor/main": True},
            },
        }

    def mapping(self) -> Json:
        major, minor, patch = map(int, HELLO[self.engine]["version"]["number"].split("."))
        version = (major, minor, patch)
        body = mappings.index_body(self.engine, make_spec(), IndexOptions(), version)["mappings"]
        body["properties"]["metadata"]["properties"] = {"sector": {"type": "keyword"}}
        body["_meta"]["hybrid_search"] = asdict(make_spec())
        return dict(body)

    def search(self, body: Mapping[str, Any]) -> Json:
        """Return the answer to a search."""
        hits = [] if "search_after" in body else self._select(body.get("query", {}))
        answer: Json = {
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "status": 200,
            "hits": {
                "total": {"value": len(self.hits), "relation": "eq"},
                "hits": hits[: body.get("size", 10)],
            },
        }
        if "aggs" in body:
            answer["aggregations"] = self._aggregate(body["aggs"], body.get("query", {}))
        return answer

    def _select(self, query: Mapping[str, Any]) -> list[Json]:
        if query == scan.UNFINDABLE:
            return []
        if query == scan.CODELESS:
            return [hit for hit in self.hits if "tokens" not in hit["fields"]]
        if "should" in query.get("bool", {}):  # what older versions had more
            return []
        if "ids" in query:
            return [hit for hit in self.hits if hit["_id"] in query["ids"]["values"]]
        if "terms" in query:
            ids = query["terms"]["document_id"]
            return [hit for hit in self.hits if hit["_source"]["document_id"] in ids]
        return self.hits

    def _aggregate(self, aggregations: Mapping[str, Any], query: Mapping[str, Any]) -> Json:
        if "sum" in aggregations:
            is_passages = aggregations["sum"]["sum"]["field"] == "passages"
            return {"sum": {"value": float(len(self.hits)) if is_passages else 0.0}}
        if "spans" in aggregations:
            spans = sum(hit["_source"]["span_count"] for hit in self.hits)
            return {
                "documents": {"doc_count": len(DOCUMENTS)},
                "spans": {"value": float(spans)},
                "written_at": {"value": None},
            }
        if "documents" in aggregations:
            return {"documents": {"buckets": [_version_bucket(hit) for hit in self._select(query)]}}
        buckets = [
            {"key": document["sector"], "doc_count": 1, "documents": {"value": 1}}
            for document in DOCUMENTS
        ]
        return {name: {"buckets": buckets} for name in aggregations}


SETTINGS = {
    "index.number_of_shards": "1",
    "index.number_of_replicas": "0",
    "index.mapping.nested_objects.limit": "10000",
    "index.uuid": "x",
}
PRIVILEGES: Sequence[str] = (
    "read",
    "view_index_metadata",
    "write",
    "maintenance",
    "create_index",
    "indices:admin/aliases",
)


def _version_bucket(hit: Json) -> Json:
    hashes = [{"key": hit["_source"]["source_hash"], "doc_count": 1, "passages": {"value": 1.0}}]
    document_id = hit["_source"]["document_id"]
    return {"key": document_id, "doc_count": 1, "hashes": {"buckets": hashes}}


def find_stage(request: HttpRequest) -> str:
    """Return what a request is for: hello, mapping, settings, msearch, search, counts or bulk."""
    path = request.target.partition("?")[0]
    if path == "/":
        return "hello"
    if "/_search" in path and b'"aggs"' in request.body:
        return "counts"
    stages = ("mapping", "settings", "msearch", "search", "bulk")
    return next((stage for stage in stages if f"/_{stage}" in path), "other")
