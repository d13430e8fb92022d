"""Heads of indexes on a server are read once, and again when the index behind the alias changes.

The fake cluster counts the requests. The same changes on real servers are in test_next_version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import head_cache, leg_search, mappings, passage_codec
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.types import SCHEMA, Head, IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.errors import IndexMissingError, IndexStoreError, ModelError, UsageError
from hybrid_search.ingest.document_parser import rehash_source
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import Query
from hybrid_search.search.result import Result
from hybrid_search.text.types import Entry
from tests.helpers.fake_server import HttpRequest, Reply, ScriptedServer
from tests.helpers.server_index import GRAPH
from tests.helpers.tiny_encoder import TinyEncoder, make_entries, make_spec

CALL = {"id": "call", "text": "I want my money back, the kettle leaks."}
OTHER_MODEL = replace(make_spec(), model="other", fingerprint="other-fingerprint")

Json = dict[str, Any]


@dataclass
class FakeCluster:
    """The index behind the alias ``calls``; a search finds all its passages, or those it names."""

    name: str = "calls-000001"
    spec: IndexSpec = field(default_factory=make_spec)
    fields: Mapping[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=lambda: make_entries(CALL))
    paths: list[str] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    absent_column: str = ""
    passages: int = 1
    shards: int = 1

    def __call__(self, request: HttpRequest) -> Reply:
        path = request.target.partition("?")[0]
        self.paths.append(path)
        if path in ("/_all/_mapping", "/_alias"):
            return Reply()
        if not self.name:
            error = {"type": "index_not_found_exception", "reason": "no such index"}
            return Reply(404, {"error": error, "status": 404})
        if path == "/calls":
            return Reply(body={self.name: {"mappings": self.mapping(), "aliases": {"calls": {}}}})
        if path == "/_msearch":
            bodies = [json.loads(line) for line in request.body.splitlines()[1::2]]
            self.bodies += bodies
            return Reply(body={"responses": list(map(self.answer, bodies))})
        return Reply(body=self.answer(json.loads(request.body)))

    def mapping(self) -> Json:
        fields = {name: {"type": kind} for name, kind in self.fields.items()}
        body = mappings.index_body("opensearch", self.spec, IndexOptions(), (3, 5, 0))["mappings"]
        body["properties"]["metadata"]["properties"] = fields
        body["properties"].pop(self.absent_column, None)
        return dict(body)

    def answer(self, body: Mapping[str, Any]) -> Json:
        keys = body.get("query", {}).get("ids", {}).get("values")
        hits = [hit for hit in map(self.hit, self.entries) if keys is None or hit["_id"] in keys]
        total = {"total": {"value": self.passages}} if body.get("track_total_hits") else {}
        return {"hits": {"hits": hits[: body["size"]], **total}, "_shards": {"total": self.shards}}

    def hit(self, entry: Entry) -> Json:
        fields = passage_codec.build_source(entry, self.spec, "2026-01-01T00:00:00+00:00", GRAPH)
        source = json.loads(passage_codec.to_json(fields))
        columns = ("document_id", "ordinal", "tokens", "source_hash")
        return {
            "_index": self.name,
            "_id": passage_codec.passage_id(source["document_id"], source["ordinal"]),
            "_score": 1.0,
            "_source": source,
            "fields": {column: [source[column]] for column in columns},
        }

    def take_paths(self) -> list[str]:
        """Return the paths of the requests since the last call."""
        paths, self.paths = self.paths, []
        return paths

    def replace_index(self, name: str, spec: IndexSpec, policy: str) -> None:
        self.name, self.spec = name, spec
        self.entries = [
            replace(entry, source_hash=rehash_source(entry.source_hash, spec))
            for entry in make_entries(CALL, policy)
        ]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def backend(cluster: FakeCluster) -> Iterator[ServerBackend]:
    with (
        ScriptedServer(cluster) as server,
        closing(open_backend(f"opensearch+{server.url}")) as server_backend,
    ):
        assert isinstance(server_backend, ServerBackend)
        yield server_backend


def run_query(backend: ServerBackend, **options: Any) -> Result:
    query = Query("money back", index="calls", **options)
    return search(backend, TinyEncoder(), lambda *_: Calibration(), query)


def query_ids(backend: ServerBackend, **options: Any) -> list[str]:
    return [hit.id for hit in run_query(backend, **options).hits]


LATER = ["/_msearch", "/calls/_search"]  # legs with codes, then contents
FIRST = ["/calls", "/calls/_search", *LATER]  # head, count of passages


def test_the_head_is_read_for_the_first_query_and_for_no_later_one(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == FIRST
    for _ in range(3):
        assert query_ids(backend) == ["call"]
        assert cluster.take_paths() == LATER


def test_reading_the_head_always_asks_the_server(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    """Ingest, reindex and verify rely on the head as it is now."""
    query_ids(backend)
    cluster.fields = {"tier": "keyword"}
    assert backend.read_head("calls") == (make_spec(), {"tier": "string"})


@pytest.mark.parametrize("name", ["calls-000001", "calls-000002"], ids=["recreated", "swapped"])
def test_an_index_replaced_by_one_of_another_model_is_never_searched_by_the_old_head(
    backend: ServerBackend, cluster: FakeCluster, name: str
) -> None:
    query_ids(backend)
    cluster.replace_index(name, OTHER_MODEL, "6/1")
    for _ in range(2):
        with pytest.raises(ModelError, match="other-fingerprint"):
            query_ids(backend)


@pytest.mark.parametrize("name", ["calls-000001", "calls-000002"], ids=["recreated", "swapped"])
def test_a_query_goes_on_by_the_head_of_the_index_that_replaced_the_old_one(
    backend: ServerBackend, cluster: FakeCluster, name: str
) -> None:
    query_ids(backend)
    cluster.replace_index(name, make_spec("4/1"), "4/1")
    cluster.take_paths()
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == ["/_msearch", "/calls", *LATER]
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == LATER


def test_a_reindexed_copy_with_the_same_head_needs_no_second_run(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    """As where only the shards or the quantization differ."""
    query_ids(backend)
    cluster.name = "calls-000002"
    cluster.take_paths()
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == ["/_msearch", "/calls", *LATER[1:]]
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == LATER


@pytest.mark.parametrize(
    "options", [{"where": {"tier": "gold"}}, {"sort": "tier"}], ids=["filter", "sort"]
)
def test_a_field_that_another_process_adds_can_be_used_at_once(
    backend: ServerBackend, cluster: FakeCluster, options: Mapping[str, Any]
) -> None:
    query_ids(backend)
    cluster.take_paths()
    with pytest.raises(UsageError, match="tier"):
        query_ids(backend, **options)
    assert cluster.take_paths() == ["/calls"]  # the field is looked for before it is refused
    cluster.fields = {"tier": "keyword"}
    assert query_ids(backend, **options) == ["call"]


def test_an_unknown_field_is_refused_by_a_head_that_was_just_read(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    with pytest.raises(UsageError, match="tier"):
        query_ids(backend, where={"tier": "gold"})
    assert cluster.take_paths() == ["/calls"]


@pytest.mark.parametrize(
    ("schema", "absent_column", "difference"),
    [
        (
            SCHEMA - 1,
            "",
            f"has schema {SCHEMA - 1}, and this version of hybrid_search reads {SCHEMA}",
        ),
        (SCHEMA, "turn_speakers", "lacks turn_speakers in its mapping"),
        (SCHEMA, "spans", "lacks spans, spans.end, spans.start, spans.text, spans.vector in its"),
    ],
)
def test_an_index_of_another_schema_or_without_a_column_is_refused_in_one_line(
    backend: ServerBackend,
    cluster: FakeCluster,
    schema: int,
    absent_column: str,
    difference: str,
) -> None:
    cluster.spec, cluster.absent_column = replace(make_spec(), schema=schema), absent_column
    with pytest.raises(IndexStoreError, match=difference) as raised:
        query_ids(backend)
    assert str(raised.value).endswith(": ingest again into a new index")
    assert "\n" not in str(raised.value)


def test_an_index_that_was_deleted_is_missing_and_is_found_when_it_is_back(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    query_ids(backend)
    cluster.name = ""
    for _ in range(2):
        with pytest.raises(IndexMissingError, match="there is no index 'calls'"):
            query_ids(backend)
    cluster.name = "calls-000001"
    assert query_ids(backend) == ["call"]


def test_an_empty_index_does_not_say_which_it_is_so_its_head_is_read_each_time(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    cluster.entries = []
    for _ in range(2):
        assert query_ids(backend) == []
        assert "/calls" in cluster.take_paths()
    cluster.replace_index("calls-000001", OTHER_MODEL, "6/1")
    with pytest.raises(ModelError, match="other-fingerprint"):
        query_ids(backend)


def test_passages_written_by_another_version_of_the_program_are_asked_about_once(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    """Their digest is another, although the head is the same."""
    cluster.entries = [replace(entry, source_hash="abc.def") for entry in cluster.entries]
    query_ids(backend)
    assert cluster.take_paths() == [
        "/calls",
        "/calls/_search",  # counts passages
        "/_msearch",
        "/calls",
        "/calls/_search",
    ]
    query_ids(backend)
    assert cluster.take_paths() == LATER


def test_an_old_head_is_read_again(
    backend: ServerBackend, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_cache, "REMEMBERED_SECONDS", -1.0)
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == FIRST
    assert query_ids(backend) == ["call"]
    assert cluster.take_paths() == ["/calls", *LATER]


def test_each_shard_is_searched_for_a_share_of_its_own_passages(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    cluster.passages, cluster.shards = 100_000, 2
    for _ in range(3):
        run_query(backend)
    queries = [body["query"].get("nested") for body in cluster.bodies]
    searched = [query["query"]["knn"]["spans.vector"]["k"] for query in queries if query]
    assert searched == [5_000] * 3  # 100,000 / 2 shards / 10


def test_a_size_is_counted_again_when_it_is_old(
    backend: ServerBackend, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed = []
    for passages, seconds in ((35_000, 600.0), (140_000, 600.0), (140_000, -1.0)):
        cluster.passages = passages
        monkeypatch.setattr(leg_search, "REMEMBERED_SECONDS", seconds)
        run_query(backend)
        proposed += [body["size"] for body in cluster.bodies if "nested" in body["query"]]
        cluster.bodies.clear()
    assert proposed == [400, 400, 800]  # four times the passages, twice as many proposed


def test_words_alone_need_no_size(backend: ServerBackend, cluster: FakeCluster) -> None:
    assert query_ids(backend, alpha=0) == ["call"]
    assert "/calls/_search" not in cluster.take_paths()[:-1]


def test_an_answer_by_a_head_that_another_thread_found_outdated_is_not_given(
    backend: ServerBackend, cluster: FakeCluster
) -> None:
    """The other thread has replaced what the first one's check compares with."""
    backend.read_head("calls")

    def answer(head: Head) -> str:
        policies.append(head[0].policy)
        cluster.replace_index("calls-000002", make_spec("4/1"), "4/1")
        backend.read_head("calls")
        return head[0].policy

    policies: list[str] = []
    assert backend.answer_by_head("calls", answer) == "4/1"
    assert policies == [DEFAULT_POLICY, "4/1"]
