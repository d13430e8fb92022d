"""Indexes on a real server: versions behind an alias, specs, and reindexing without a gap.

Also what is refused on the way.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, document_buffer, heads, next_version
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.document_buffer import DocumentBuffer
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import SCHEMA, IndexSpec, RejectedDocument
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.errors import (
    AccessError,
    IndexMissingError,
    IndexStoreError,
    ModelError,
    ServerError,
    UsageError,
)
from hybrid_search.ingest.document_parser import rehash_source
from hybrid_search.ingest.options import IngestOptions, ignore_report
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.maintenance import reindex
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.hit import Hit
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import Query
from hybrid_search.text.residual_codes import DEFAULT_BITS
from hybrid_search.text.types import Document, Encoding
from tests.helpers import live_servers
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder, make_entries, make_spec

CALLS: list[dict[str, Any]] = [
    {
        "id": f"call-{number}",
        "turns": [
            {
                "speaker": "agent",
                "text": f"Hello, this is desk {number}, what can I do for you? "
                + "We talk. " * (40 * (number % 2)),
            },
            {
                "speaker": "caller",
                "text": f"I want my money back for order {number}, the kettle leaks. "
                + "It does. " * (40 * (number % 3)),
            },
        ],
        "tier": "gold" if number % 3 == 0 else "silver",
        "minutes": number / 2,
    }
    for number in range(12)
]
"""Calls of one to four passages each."""

REJECTS = Path("rejected.jsonl")


class WiderEncoder(TinyEncoder):
    """Another model: the same vectors twice, in 16 dimensions."""

    info = EncoderInfo("wider", "wider-fingerprint", 16, "float32", "turn")

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [
            replace(encoding, vectors=np.tile(encoding.vectors, 2))
            for encoding in super().encode(texts)
        ]


class RenamedEncoder(TinyEncoder):
    """Another model of the same dimension, whose vectors happen to be the same."""

    info = replace(TinyEncoder.info, name="renamed", fingerprint="renamed-fingerprint")


@pytest.fixture(params=live_servers.URLS)
def url(request: pytest.FixtureRequest) -> str:
    server_url: str = request.param
    return server_url


@pytest.fixture
def name(url: str) -> Iterator[str]:
    """The name of the index of one test."""
    with live_servers.unique_index_name(url) as own:
        yield own


@pytest.fixture
def backend(url: str) -> Iterator[ServerBackend]:
    with closing(open_server_backend(url)) as server_backend:
        yield server_backend


def open_server_backend(url: str) -> ServerBackend:
    server_backend = open_backend(url)
    assert isinstance(server_backend, ServerBackend)
    return server_backend


def ingest_documents(
    backend: ServerBackend, name: str, *documents: Mapping[str, Any], policy: str | None = None
) -> Summary:
    """Ingest as the client does: under the policy of the index, if there is one."""
    try:
        index_policy = backend.read_head(name)[0].policy
    except IndexMissingError:
        index_policy = DEFAULT_POLICY
    return ingest(
        make_lines(documents),
        backend,
        TinyEncoder(),
        IngestOptions(name, REJECTS, policy or index_policy),
    )


def reindex_by_copy(
    backend: ServerBackend,
    name: str,
    policy: str | None = None,
    options: Mapping[str, str] | None = None,
    *,
    keep: bool = False,
) -> Summary:
    return reindex.copy_index(backend, name, policy, options or {}, ignore_report, keep=keep)


def reindex_from_documents(
    backend: ServerBackend,
    name: str,
    documents: Iterable[Mapping[str, Any]],
    encoder: Encoder | None = None,
) -> Summary:
    return reindex.ingest_new_version(
        backend,
        encoder or TinyEncoder(),
        name,
        make_lines(documents),
        REJECTS,
        DEFAULT_POLICY,
        DEFAULT_BITS,
        {},
        ignore_report,
    )


def query_hits(
    backend: ServerBackend,
    name: str,
    phrase: str = "money back kettle",
    encoder: Encoder | None = None,
    **options: Any,
) -> list[Hit]:
    """Return all passages that a query finds."""
    query = Query(phrase, index=name, size=100, group_by="passage", **options)
    return search(backend, encoder or TinyEncoder(), lambda *_: Calibration(), query).hits


def query_ids(backend: ServerBackend, name: str) -> set[str]:
    return {hit.id for hit in query_hits(backend, name)}


def list_index_names(backend: ServerBackend, name: str) -> list[str]:
    """Return all indexes whose names begin with that of the test."""
    rows = backend.server.request("GET", "/_cat/indices", params={"format": "json", "h": "index"})
    return sorted(row["index"] for row in rows if row["index"].startswith(name))


def fetch_mapping(backend: ServerBackend, name: str) -> dict[str, Any]:
    ((_, response),) = backend.server.request("GET", f"/{name}/_mapping").items()
    index_mapping: dict[str, Any] = response["mappings"]
    return index_mapping


def fetch_settings(backend: ServerBackend, name: str) -> dict[str, str]:
    ((_, response),) = backend.server.request(
        "GET", f"/{name}/_settings", params={"flat_settings": True}
    ).items()
    index_settings: dict[str, str] = response["settings"]
    return index_settings


# What is there


def test_an_index_is_its_first_version_behind_an_alias_that_is_written_to(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, *CALLS[:2])
    assert list_index_names(backend, name) == [f"{name}-000001"]
    assert backend.server.request("GET", f"/_alias/{name}") == {
        f"{name}-000001": {"aliases": {name: {"is_write_index": True}}}
    }


def test_the_mapping_says_which_model_policy_and_options_the_index_was_made_for(
    backend: ServerBackend, name: str, url: str
) -> None:
    backend.create_index(name, make_spec("4/1"), {"quantization": "int8"})
    meta = fetch_mapping(backend, name)["_meta"]
    assert meta["hybrid_search"] == asdict(make_spec("4/1"))
    assert meta["options"] == {
        "analyzer": backend.options.analyzer,
        "knn_engine": "lucene",
        "quantization": "int8",
        "graph_dimension": 192,
        "m": 16,
        "ef_construction": 100,
    }
    assert backend.read_head(name) == (make_spec("4/1"), {})


def test_options_of_the_url_hold_where_none_are_given(url: str, name: str) -> None:
    address = url.partition("?")[0]
    with closing(
        open_server_backend(f"{address}?analyzer=standard&replicas=0&shards=3&m=8")
    ) as backend:
        backend.create_index(name, make_spec(), {"m": "12"})
        assert fetch_settings(backend, name)["index.number_of_shards"] == "3"
        vector = fetch_mapping(backend, name)["properties"]["spans"]["properties"]["vector"]
        assert 12 in (
            vector.get("index_options", {}).get("m"),
            vector.get("method", {}).get("parameters", {}).get("m"),
        )


def test_to_set_up_what_is_there_changes_nothing(backend: ServerBackend, name: str) -> None:
    ingest_documents(backend, name, *CALLS[:3])
    backend.create_index(name, make_spec(), {})
    assert (list_index_names(backend, name), backend.describe_index(name).documents) == (
        [f"{name}-000001"],
        3,
    )


def test_to_set_up_with_other_options_is_an_error_with_both(
    backend: ServerBackend, name: str
) -> None:
    backend.create_index(name, make_spec(), {"quantization": "int8", "shards": "2"})
    backend.create_index(name, make_spec(), {"quantization": "int8", "shards": "2"})
    for option, existing, requested in (
        ("quantization", "int8", "none"),
        ("shards", "2", "3"),
        ("m", "16", "9"),
    ):
        with pytest.raises(
            UsageError,
            match=f"index '{name}' has {option} '{existing}', but '{requested}' was given: leave "
            f"it out, or make the next version",
        ):
            backend.create_index(name, make_spec(), {option: requested})


def test_indexes_are_listed_by_their_names_and_those_of_others_are_not(
    backend: ServerBackend, name: str
) -> None:
    for own in ("b", "a"):
        ingest_documents(backend, f"{name}-{own}", CALLS[0], {"id": "refused"})
    backend.server.request("PUT", f"/{name}-other", body={"aliases": {f"{name}-alias": {}}})
    assert [index for index in backend.list_indexes() if index.startswith(name)] == [
        f"{name}-a",
        f"{name}-b",
    ]


# Not ours


@pytest.mark.parametrize("do", ["query", "describe", "ingest", "create", "reindex", "drop"])
def test_an_index_of_somebody_else_is_one_error_and_is_left_alone(
    backend: ServerBackend, name: str, do: str
) -> None:
    backend.server.request(
        "PUT", f"/{name}", body={"mappings": {"properties": {"text": {"type": "text"}}}}
    )
    with pytest.raises(
        IndexStoreError,
        match=f"index '{name}' on .* was not made by hybrid_search: use another name, or make "
        f"spans for it by hybrid-search attach --index {name} --text FIELD",
    ):
        use_index(backend, name, do)
    assert list_index_names(backend, name) == [name]
    assert fetch_mapping(backend, name) == {"properties": {"text": {"type": "text"}}}


@pytest.mark.parametrize("do", ["query", "describe", "ingest", "create", "reindex", "drop"])
def test_an_alias_over_two_indexes_is_one_error_that_names_both(
    backend: ServerBackend, name: str, do: str
) -> None:
    ingest_documents(backend, f"{name}-a", *CALLS[:2])
    ingest_documents(backend, f"{name}-b", *CALLS[2:4])
    index_names = [f"{name}-{suffix}-000001" for suffix in "ab"]
    backend.server.request(
        "POST", "/_aliases", body={"actions": [{"add": {"indices": index_names, "alias": name}}]}
    )
    with pytest.raises(
        IndexStoreError,
        match=f"'{name}' points to 2 indexes, {index_names[0]}, {index_names[1]}, but must "
        f"point to one",
    ):
        use_index(backend, name, do)
    assert list_index_names(backend, name) == index_names


@pytest.mark.parametrize("body", [{}, {"mappings": {"_meta": {"owner": "somebody"}}}])
def test_an_index_without_our_meta_behind_an_alias_is_one_error(
    backend: ServerBackend, name: str, body: dict[str, Any]
) -> None:
    backend.server.request("PUT", f"/{name}-000001", body={**body, "aliases": {name: {}}})
    with pytest.raises(
        IndexStoreError, match=f"index '{name}-000001' on .* was not made by hybrid_search"
    ):
        query_hits(backend, name)


def test_an_index_of_another_schema_is_one_error_with_both(
    backend: ServerBackend, name: str
) -> None:
    other = {
        "mappings": {"_meta": {"hybrid_search": {"schema": 99, "tower": "left"}}},
        "aliases": {name: {}},
    }
    backend.server.request("PUT", f"/{name}-000001", body=other)
    for do in ("query", "ingest", "create", "reindex"):
        message = f"index '{name}-000001' on .* schema 99, .* reads {SCHEMA}: ingest again"
        with pytest.raises(IndexStoreError, match=message):
            use_index(backend, name, do)


def use_index(backend: ServerBackend, name: str, do: str) -> None:
    """Do one of the things that can be done with an index."""
    actions: dict[str, Callable[[], object]] = {
        "query": lambda: query_hits(backend, name),
        "describe": lambda: backend.describe_index(name),
        "ingest": lambda: ingest_documents(backend, name, CALLS[0], policy=DEFAULT_POLICY),
        "create": lambda: backend.create_index(name, make_spec(), {}),
        "reindex": lambda: reindex_by_copy(backend, name),
        "drop": lambda: backend.drop_index(name),
    }
    actions[do]()


# A new version


def test_a_copy_under_another_policy_and_quantization_finds_the_same_with_the_same_scores(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, *CALLS)
    before, old_description = query_hits(backend, name), backend.describe_index(name)
    summary = reindex_by_copy(backend, name, "3/1", {"quantization": "int8"})
    after, new_description = query_hits(backend, name), backend.describe_index(name)
    assert (
        after == before
    )  # every number of every hit: cosines come from the codes, which were copied
    assert (new_description.documents, new_description.passages, new_description.fields) == (
        old_description.documents,
        old_description.passages,
        old_description.fields,
    )
    assert new_description.spans > old_description.spans
    assert new_description.spec == make_spec("3/1")
    assert (summary.documents, summary.passages, summary.spans) == (
        new_description.documents,
        new_description.passages,
        new_description.spans,
    )
    assert fetch_mapping(backend, name)["_meta"]["options"]["quantization"] == "int8"
    assert list_index_names(backend, name) == [f"{name}-000002"]


@pytest.mark.parametrize("numbers", [1, 3])
def test_fewer_numbers_in_the_graph_find_passages_and_change_no_score(
    backend: ServerBackend, name: str, numbers: int
) -> None:
    """The tiny encoder has 8 numbers: scores are those of all, from the word codes.

    The second query begins with the head of the index that was replaced.
    """
    ingest_documents(backend, name, *CALLS)
    before = list_scores(backend, name)
    reindex_by_copy(backend, name, options={"graph_dimension": str(numbers)})
    assert list_scores(backend, name) == before
    assert before
    mapping = fetch_mapping(backend, name)["properties"]["spans"]["properties"]["vector"]
    assert mapping.get("dimension", mapping.get("dims")) == numbers


def test_an_index_of_floats_answers_as_one_of_bytes_does(backend: ServerBackend, name: str) -> None:
    """Each further query begins with the head of the version that was replaced."""
    backend.create_index(name, make_spec(), {"quantization": "none"})
    ingest_documents(backend, name, *CALLS)
    with_floats = list_scores(backend, name)
    reindex_by_copy(backend, name, options={"quantization": "byte"})
    vector = fetch_mapping(backend, name)["properties"]["spans"]["properties"]["vector"]
    assert GraphVectors.from_mapping(vector, 8) == GraphVectors(8, are_bytes=True)
    assert list_scores(backend, name) == with_floats
    reindex_by_copy(backend, name, options={"quantization": "none"})
    assert list_scores(backend, name) == with_floats
    assert with_floats


def list_scores(backend: ServerBackend, name: str) -> list[Any]:
    """Return the hits of a query, with score and spans."""
    return [(hit.id, hit.passage, hit.score, hit.spans) for hit in query_hits(backend, name)]


def test_a_new_version_keeps_the_options_that_are_not_given(
    backend: ServerBackend, name: str
) -> None:
    """Also options that the URL does not give, and replicas that somebody has set since."""
    backend.create_index(
        name,
        make_spec(),
        {
            "analyzer": "simple",
            "quantization": "int8",
            "m": "9",
            "ef_construction": "77",
            "shards": "2",
            "replicas": "0",
        },
    )
    backend.server.request("PUT", f"/{name}/_settings", body={"index.number_of_replicas": 3})
    before = fetch_mapping(backend, name)
    reindex_by_copy(backend, name, options={"m": "11"})
    after, index_settings = fetch_mapping(backend, name), fetch_settings(backend, name)
    assert after["_meta"]["options"] == {**before["_meta"]["options"], "m": 11}
    assert after["properties"]["text"]["analyzer"] == "simple"
    assert (
        index_settings["index.number_of_shards"],
        index_settings["index.number_of_replicas"],
    ) == ("2", "3")


def test_more_passages_than_a_page_are_copied_each_once(
    backend: ServerBackend, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_version, "PAGE", 5)
    ingest_documents(backend, name, *CALLS)
    passage_counts: list[int] = []
    reindex.copy_index(
        backend, name, None, {}, lambda summary: passage_counts.append(summary.passages)
    )
    passages = backend.describe_index(name).passages
    assert passages > 20
    assert passage_counts == list(range(5, passages + 1, 5))
    assert len(query_hits(backend, name)) == passages


def test_a_new_version_from_sources_may_be_of_another_model(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, *CALLS[:3])
    reindex_from_documents(backend, name, CALLS[:3], WiderEncoder())
    assert backend.read_head(name)[0] == IndexSpec.from_encoder(WiderEncoder.info, DEFAULT_POLICY)
    assert {hit.id for hit in query_hits(backend, name, encoder=WiderEncoder())} == {
        "call-0",
        "call-1",
        "call-2",
    }
    with pytest.raises(ModelError, match=r"'wider-fingerprint'.*'tiny-fingerprint'"):
        query_hits(backend, name)


def test_of_a_document_that_is_twice_in_the_sources_the_last_one_counts(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, *CALLS[:2])
    summary = reindex_from_documents(
        backend, name, [CALLS[0], CALLS[1], {"id": "call-0", "text": "My money back."}]
    )
    assert (summary.read, summary.duplicates) == (3, 1)
    assert [hit.text for hit in query_hits(backend, name) if hit.id == "call-0"] == [
        "My money back."
    ]


def test_where_the_sources_end_in_an_error_nothing_changes_and_the_new_version_is_gone(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, CALLS[0])

    def broken() -> Iterator[SourceLine]:
        yield from make_lines(CALLS[1:3])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reindex.ingest_new_version(
            backend,
            TinyEncoder(),
            name,
            broken(),
            REJECTS,
            DEFAULT_POLICY,
            DEFAULT_BITS,
            {},
            ignore_report,
        )
    assert (list_index_names(backend, name), query_ids(backend, name)) == (
        [f"{name}-000001"],
        {"call-0"},
    )


WRITES: dict[str, Callable[[ServerBackend, str], object]] = {
    "a new document": lambda backend, name: ingest_documents(
        backend, name, {"id": "late", "text": "My money back."}
    ),
    "a document that is gone": lambda backend, name: delete_documents(backend, name, ["call-5"]),
    "a document of as many passages": lambda backend, name: ingest_documents(
        backend, name, {"id": "short", "text": "My money, all of it."}
    ),
}


def delete_documents(backend: ServerBackend, name: str, document_ids: Sequence[str]) -> int:
    with backend.writer(name, make_spec()) as writer:
        return writer.delete(document_ids)


@pytest.mark.parametrize("write", WRITES)
def test_a_copy_of_what_changes_meanwhile_is_refused_with_both_counts(
    backend: ServerBackend, name: str, url: str, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    monkeypatch.setattr(next_version, "PAGE", 4)
    ingest_documents(backend, name, {"id": "short", "text": "My money back."}, *CALLS)
    old_description = backend.describe_index(name)
    write_finished = threading.Event()

    def write_meanwhile() -> None:
        with closing(open_server_backend(url)) as second_backend:
            WRITES[write](second_backend, name)
        write_finished.set()

    def report(_: Summary) -> None:
        if not write_finished.is_set():
            writer = threading.Thread(target=write_meanwhile)
            writer.start()
            writer.join()

    with pytest.raises(
        IndexStoreError,
        match=rf"{name}-000001 had \({old_description.documents}, "
        rf"{old_description.passages}.*somebody wrote meanwhile",
    ) as error:
        reindex.copy_index(backend, name, "4/1", {}, report)
    new_description = backend.describe_index(name)
    assert f"({new_description.documents}, {new_description.passages}" in str(error.value)
    assert "Nothing was changed; stop the writers and run the same command again" in str(
        error.value
    )
    assert write_finished.is_set()
    assert list_index_names(backend, name) == [f"{name}-000001"]
    assert backend.read_head(name)[0].policy == DEFAULT_POLICY


def test_a_query_meanwhile_sees_no_error_no_gap_and_nothing_twice(
    backend: ServerBackend, name: str, url: str
) -> None:
    ingest_documents(backend, name, *CALLS)
    expected = [(hit.id, hit.passage, hit.cosine) for hit in query_hits(backend, name)]
    stop = threading.Event()

    def query_repeatedly() -> int:
        """Return how many queries were answered; an error is what a user would have seen."""
        count = 0
        with closing(open_server_backend(url)) as second_backend:
            while not stop.is_set():
                hits = query_hits(second_backend, name)
                assert [(hit.id, hit.passage, hit.cosine) for hit in hits] == expected
                count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        counts = [pool.submit(query_repeatedly) for _ in range(3)]
        try:
            for number in range(4):
                reindex_by_copy(backend, name, f"{number + 3}/1")
        finally:
            stop.set()
    assert sum(count.result() for count in counts) > 10
    assert list_index_names(backend, name) == [f"{name}-000005"]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("do", ["write", "delete"])
def test_a_writer_whose_version_is_not_the_one_any_more_is_told_so(
    backend: ServerBackend, name: str, do: str, keep: bool
) -> None:
    """Its documents would be in the old version, which nobody searches, or in no index at all."""
    ingest_documents(backend, name, *CALLS[:3])
    message = rf"'{name}' pointed to {name}-000001 at the start of this run, and now points to "
    rf"{name}-000002: .* Run the same command again"
    with pytest.raises(IndexStoreError, match=message), backend.writer(name, make_spec()) as writer:
        writer.write(make_entries(CALLS[3]))
        reindex_by_copy(backend, name, keep=keep)
        if do == "write":
            writer.write(make_entries(CALLS[4]))
        else:
            writer.delete(["call-3"])
    assert query_ids(backend, name) == {f"call-{number}" for number in range(4)}
    assert list_index_names(backend, name) == [
        *([f"{name}-000001"] if keep else []),
        f"{name}-000002",
    ]


def test_a_writer_of_an_index_that_is_dropped_meanwhile_is_told_so_and_does_not_make_it_again(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, CALLS[0])
    with (
        pytest.raises(
            IndexStoreError,
            match=f"'{name}' pointed to {name}-000001 at the start of this run, and now points to "
            "none",
        ),
        backend.writer(name, make_spec()) as writer,
    ):
        backend.drop_index(name)
        writer.write(make_entries(CALLS[1]))
    assert list_index_names(backend, name) == []


def test_a_kept_old_version_can_be_asked_by_its_own_name_and_the_next_takes_the_next_number(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, *CALLS[:2])
    reindex_by_copy(backend, name, "4/1", keep=True)
    reindex_by_copy(backend, name, "3/1", keep=True)
    ingest_documents(backend, name, CALLS[2])
    assert list_index_names(backend, name) == [f"{name}-00000{number}" for number in (1, 2, 3)]
    assert [backend.read_head(f"{name}-00000{number}")[0].policy for number in (1, 2, 3)] == [
        DEFAULT_POLICY,
        "4/1",
        "3/1",
    ]
    assert query_ids(backend, f"{name}-000001") == {"call-0", "call-1"}
    assert query_ids(backend, name) == {"call-0", "call-1", "call-2"}
    assert [index for index in backend.list_indexes() if index.startswith(name)] == [name]


def test_a_number_is_taken_anew_only_where_all_are_gone(backend: ServerBackend, name: str) -> None:
    ingest_documents(backend, name, CALLS[0])
    reindex_by_copy(backend, name, keep=True)
    backend.drop_index(name)
    assert list_index_names(backend, name) == [f"{name}-000001"]
    ingest_documents(backend, name, CALLS[1])
    assert list_index_names(backend, name) == [f"{name}-000001", f"{name}-000002"]
    assert query_ids(backend, name) == {"call-1"}


@pytest.mark.parametrize("keep", [False, True])
def test_of_two_that_reindex_at_once_one_is_told_so_and_leaves_nothing(
    backend: ServerBackend, name: str, keep: bool
) -> None:
    """The other publishes after the copy of the first, before the alias is swapped."""
    ingest_documents(backend, name, *CALLS[:3])
    first = backend.create_next_version(name, make_spec("4/1"), {})
    first.copy(rehash_source, lambda _: None)
    reindex_by_copy(backend, name, "3/1", keep=keep)
    with pytest.raises(
        IndexStoreError,
        match=f"'{name}' pointed to {name}-000001 before, and now points to {name}-000003"
        f": .*Nothing was changed",
    ):
        first.publish(keep=False)
    first.discard()
    assert backend.read_head(name)[0].policy == "3/1"
    assert list_index_names(backend, name) == [
        *([f"{name}-000001"] if keep else []),
        f"{name}-000003",
    ]
    assert query_ids(backend, name) == {"call-0", "call-1", "call-2"}


def test_a_version_that_was_published_is_not_discarded(backend: ServerBackend, name: str) -> None:
    """As when the answer to the swap was lost, and the program believes that it failed."""
    ingest_documents(backend, name, *CALLS[:3])
    new = backend.create_next_version(name, make_spec("4/1"), {})
    new.copy(rehash_source, lambda _: None)
    new.publish(keep=True)
    new.discard()
    assert backend.read_head(name)[0].policy == "4/1"
    assert query_ids(backend, name) == {"call-0", "call-1", "call-2"}


@pytest.mark.parametrize(
    ("policy", "options"),
    [("often", {}), (None, {"quantization": "int2"}), (None, {"analyzer": "klingon"})],
)
def test_a_new_version_that_cannot_be_made_leaves_nothing(
    backend: ServerBackend, name: str, policy: str | None, options: dict[str, str]
) -> None:
    ingest_documents(backend, name, CALLS[0])
    with pytest.raises((UsageError, ServerError)):
        reindex_by_copy(backend, name, policy, options)
    assert list_index_names(backend, name) == [f"{name}-000001"]


# Removing


def test_a_dropped_index_is_gone_with_its_notes_and_no_other(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, CALLS[0], {"id": "refused"})
    ingest_documents(backend, f"{name}-more", CALLS[1], {"id": "refused"})
    assert list_index_names(backend, name) == [
        f"{name}-000001",
        f"{name}-more-000001",
        f"{name}-more-rejected",
        f"{name}-rejected",
    ]
    backend.drop_index(name)
    assert list_index_names(backend, name) == [f"{name}-more-000001", f"{name}-more-rejected"]
    with pytest.raises(IndexMissingError, match=f"there is no index '{name}'"):
        backend.drop_index(name)
    assert query_ids(backend, f"{name}-more") == {"call-1"}


# At the same moment


def test_a_writer_that_writes_nothing_makes_no_index(backend: ServerBackend, name: str) -> None:
    with backend.writer(name, make_spec()) as writer:
        assert (writer.read_source_hashes(["call-0"]), writer.write([])) == ({}, [])
        writer.note([RejectedDocument("calls.jsonl", 1, "the text is empty")])
        assert writer.delete(["call-0"]) == 0
    assert list_index_names(backend, name) == []


@pytest.mark.parametrize("may_delete", [True, False])
def test_an_index_whose_first_documents_are_refused_is_removed_by_who_may_delete(
    backend: ServerBackend, name: str, may_delete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(method: str, path: str) -> None:
        if method == "DELETE" and not may_delete:
            raise AccessError("the server does not let user 'ingest' do DELETE (403)", 403)

    monkeypatch.setattr(heads, "read_settings", lambda *names: dict.fromkeys(names[2:], 0))
    limited = ServerBackend(InterceptedServer(backend.server, check), backend.options)
    with limited.writer(name, make_spec()) as writer:
        assert len(writer.write(make_entries(CALLS[0]))) == 1
        writer.note([RejectedDocument("calls.jsonl", 1, "too many spans")])
    assert list_index_names(backend, name) == ([] if may_delete else [f"{name}-000001"])


def test_a_writer_that_wrote_nothing_leaves_the_index_of_another_one(
    backend: ServerBackend, name: str
) -> None:
    empty_writer = backend.writer(name, make_spec())
    with backend.writer(name, make_spec()) as other_writer:
        with empty_writer:
            pass
        assert other_writer.write(make_entries(CALLS[0])) == []
    assert query_ids(backend, name) == {"call-0"}


def test_several_that_make_the_same_new_index_at_once_make_it_once(url: str, name: str) -> None:
    """Each has a thread and a connection of its own, and writes a document of its own."""
    several = 4

    def ingest_own_document(number: int, index: str, gate: threading.Barrier) -> int:
        options = IngestOptions(index, Path(f"{number}.jsonl"))
        with closing(open_server_backend(url)) as backend:
            gate.wait()
            return ingest(make_lines([CALLS[number]]), backend, TinyEncoder(), options).documents

    for turn in range(3):
        index, gate = f"{name}-{turn}", threading.Barrier(several)
        with ThreadPoolExecutor(several) as pool:
            runs = [
                pool.submit(ingest_own_document, number, index, gate) for number in range(several)
            ]
        assert [run.result() for run in runs] == [1] * several
        with closing(open_server_backend(url)) as backend:
            assert list_index_names(backend, index) == [f"{index}-000001"]
            assert query_ids(backend, index) == {f"call-{number}" for number in range(several)}


class InterceptedServer(Server):
    """A server that calls `before` ahead of each request; that may raise."""

    def __init__(self, server: Server, before: Callable[[str, str], None]) -> None:
        self.__dict__.update(vars(server))
        self._before = before

    def request(self, method: str, path: str, **options: Any) -> Any:
        self._before(method, path)
        return super().request(method, path, **options)


@pytest.mark.parametrize("trigger", ["_settings", "PUT"])
def test_an_index_that_comes_between_looking_and_making_is_taken(
    backend: ServerBackend, name: str, trigger: str
) -> None:
    """Once before the highest number is read, and once after.

    The server says in one case that there are two indexes to write to, in the other that it exists.
    """
    created: list[heads.ServerIndex] = []

    def first(method: str, path: str) -> None:
        if not created and trigger in (method, path.split("/")[2] if path.count("/") > 1 else ""):
            created.append(
                aliases.create_version(backend.server, name, make_spec(), backend.options)
            )

    index = aliases.open_or_create(
        InterceptedServer(backend.server, first), name, make_spec(), backend.options
    )
    assert [index] == created
    assert list_index_names(backend, name) == [f"{name}-000001"]


# Heads that another process changes while this one remembers them


def test_a_reader_can_filter_by_a_field_as_soon_as_it_is_written(
    backend: ServerBackend, name: str, url: str
) -> None:
    ingest_documents(backend, name, {"id": "before", "text": "My money back."})
    with closing(open_server_backend(url)) as reader:
        with pytest.raises(UsageError, match="tier"):
            query_hits(reader, name, where={"tier": "gold"})
        ingest_documents(backend, name, {"id": "after", "text": "My money back.", "tier": "gold"})
        assert [hit.id for hit in query_hits(reader, name, where={"tier": "gold"})] == ["after"]


def test_a_reader_never_answers_from_an_index_that_was_recreated_by_another_model(
    backend: ServerBackend, name: str, url: str
) -> None:
    """Under the same alias and the same name of its own."""
    ingest_documents(backend, name, *CALLS[:3])
    with closing(open_server_backend(url)) as reader:
        assert query_ids(reader, name) == {"call-0", "call-1", "call-2"}
        backend.drop_index(name)
        with pytest.raises(IndexMissingError, match=f"there is no index '{name}'"):
            query_ids(reader, name)
        ingest_documents(backend, name, *CALLS[:3])
        assert query_ids(reader, name) == {"call-0", "call-1", "call-2"}
        backend.drop_index(name)
        ingest(make_lines(CALLS[:3]), backend, RenamedEncoder(), IngestOptions(name, REJECTS))
        assert list_index_names(backend, name) == [f"{name}-000001"]
        for _ in range(2):
            with pytest.raises(ModelError, match="renamed-fingerprint"):
                query_ids(reader, name)
        renamed_hits = query_hits(reader, name, encoder=RenamedEncoder())
        assert {hit.id for hit in renamed_hits} == {"call-0", "call-1", "call-2"}


# What a server does not take


def test_a_document_of_more_spans_than_the_index_takes_is_refused_with_both_numbers(
    backend: ServerBackend, name: str
) -> None:
    """Windows of 2 words, one word apart: 3 words have 2 of them, 80 words 79.

    The limit is set to 60.
    """
    backend.create_index(name, make_spec("2/2"), {})
    backend.server.request(
        "PUT", f"/{name}/_settings", body={"index.mapping.nested_objects.limit": 60}
    )
    dense = {"id": "dense", "turns": [{"text": "Only three words."}, {"text": "spoken " * 80}]}
    summary = ingest_documents(
        backend,
        name,
        {"id": "before", "text": "My money back."},
        dense,
        {"id": "after", "text": "My money, too."},
    )
    assert (summary.documents, summary.failed) == (2, 1)
    entry = json.loads(REJECTS.read_text())
    assert entry["reason"] == (
        "a passage has more covering spans than the 60 nested objects that index "
        f"'{name}-000001' allows: "
        "use a policy of fewer spans than '2/2', or raise index.mapping.nested_objects.limit"
    )
    assert entry["detail"] == "passage 1 has 79"
    assert query_ids(backend, name) == {"before", "after"}
    assert backend.describe_index(name).passages == 2


def test_a_document_that_is_refused_leaves_its_older_version(
    backend: ServerBackend, name: str
) -> None:
    ingest_documents(backend, name, {"id": "x", "text": "My money back."}, policy="2/2")
    backend.server.request(
        "PUT", f"/{name}/_settings", body={"index.mapping.nested_objects.limit": 60}
    )
    assert ingest_documents(backend, name, {"id": "x", "text": "spoken " * 80}).failed == 1
    assert [hit.text for hit in query_hits(backend, name)] == ["My money back."]


def test_what_the_server_itself_refuses_is_refused_alone_and_leaves_nothing(
    backend: ServerBackend, name: str
) -> None:
    """One field more than the index takes, which only the server counts."""
    ingest_documents(backend, name, {"id": "before", "text": "My money back."})
    limit = {
        "index.mapping.total_fields.limit": len(
            all_fields(fetch_mapping(backend, name)["properties"])
        )
        + 3
    }
    backend.server.request("PUT", f"/{name}/_settings", body=limit)
    many_fields = {
        "id": "many",
        "text": "Much. " * 200,
        **{f"field{number}": "x" for number in range(10)},
    }
    summary = ingest_documents(
        backend, name, many_fields, {"id": "after", "text": "My money, too."}
    )
    assert (summary.documents, summary.failed) == (1, 1)
    assert "Limit of total fields" in json.loads(REJECTS.read_text())["detail"]
    assert query_ids(backend, name) == {"before", "after"}
    assert backend.describe_index(name).passages == 2


def all_fields(properties: Mapping[str, Any]) -> list[str]:
    """Return every field of a mapping, sub-fields too."""
    inner = [
        field
        for definition in properties.values()
        for field in all_fields(
            {**definition.get("properties", {}), **definition.get("fields", {})}
        )
    ]
    return [*properties, *inner]


# A long document on its way


@pytest.fixture
def _little_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer that keeps a passage or two in memory."""
    monkeypatch.setattr(document_buffer, "HELD_BYTES", 10_000)


LONG: dict[str, Any] = {
    "id": "long",
    "turns": [
        {"text": f"Turn {number}: my money back, " + "and so it goes on. " * 14}
        for number in range(40)
    ],
}


@pytest.mark.usefixtures("_little_held")
def test_a_document_that_does_not_fit_into_memory_is_written_whole(
    backend: ServerBackend, name: str
) -> None:
    assert ingest_documents(backend, name, LONG, CALLS[1]).documents == 2
    long_hits = [hit for hit in query_hits(backend, name) if hit.id == "long"]
    text = "\n".join(turn["text"] for turn in LONG["turns"])
    assert len(long_hits) == 40
    assert all(text[hit.start : hit.start + len(hit.text)] == hit.text for hit in long_hits)
    assert all(text[span.start : span.end] == span.text for hit in long_hits for span in hit.spans)
    assert ingest_documents(backend, name, LONG).skipped == 1


@pytest.mark.usefixtures("_little_held")
def test_a_long_document_whose_end_is_refused_leaves_neither_passages_nor_a_file(
    backend: ServerBackend, name: str
) -> None:
    """A file that nobody closes is a warning, and so a failure here."""
    backend.create_index(name, make_spec("2/2"), {})
    backend.server.request(
        "PUT", f"/{name}/_settings", body={"index.mapping.nested_objects.limit": 90}
    )
    refused = {"id": "long", "turns": [*LONG["turns"], {"text": "spoken " * 120}]}
    assert ingest_documents(backend, name, refused, CALLS[0]).failed == 1
    assert query_ids(backend, name) == {"call-0"}


@pytest.mark.usefixtures("_little_held")
def test_a_full_temporary_folder_is_one_error_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: FileIO("/dev/full", "w"))
    with closing(DocumentBuffer(Document("x", "", ()), 2)) as draft:
        draft.add(b"x" * 9000)
        with pytest.raises(IndexStoreError, match=r"No space left on device\).* set TMPDIR"):
            draft.add(b"x" * 9000)


def test_a_draft_keeps_no_more_in_memory_than_it_says() -> None:
    """60 MB of passages through a buffer that may hold 32 MB of them."""
    tracemalloc = pytest.importorskip("tracemalloc")
    tracemalloc.start()
    try:
        with closing(DocumentBuffer(Document("x", "", ()), 600)) as document_draft:
            for number in range(600):
                document_draft.add(
                    json.dumps(
                        {"ordinal": number, "text": "\u2028\r\n", "tokens": "x" * 100_000},
                        ensure_ascii=False,
                    ).encode()
                )
            assert [json.loads(line)["ordinal"] for line in document_draft] == list(range(600))
            assert not any(
                line.endswith(b"\n") for line in document_draft
            )  # it would be an empty line of the bulk request
        assert tracemalloc.get_traced_memory()[1] < 2 * document_buffer.HELD_BYTES
    finally:
        tracemalloc.stop()


# Notes of what was refused


def fetch_notes(backend: ServerBackend, name: str) -> list[dict[str, Any]]:
    body = {"size": 100, "sort": ["line"], "query": {"match_all": {}}}
    return [
        hit["_source"]
        for hit in backend.server.request("POST", f"/{name}-rejected/_search", body=body)["hits"][
            "hits"
        ]
    ]


def test_a_note_says_where_a_refused_document_was_read_and_why_and_not_what_is_in_it(
    backend: ServerBackend, name: str
) -> None:
    private_text = "the card number is 4000 1234"
    ingest_documents(
        backend,
        name,
        CALLS[0],
        {"id": "empty", "text": "", "said": private_text},
        {"id": "number", "text": private_text, "minutes": "long"},
    )
    stored_notes = fetch_notes(backend, name)
    assert [(note["index"], note["source"], note["line"]) for note in stored_notes] == [
        (name, "calls.jsonl", 2),
        (name, "calls.jsonl", 3),
    ]
    assert stored_notes[0]["reason"] == "the text is empty"
    assert "minutes" in stored_notes[1]["reason"]
    assert stored_notes[1]["document_id"] == "number"
    assert all(
        set(note) <= {"index", "at", "source", "line", "reason", "document_id"}
        for note in stored_notes
    )
    assert private_text not in json.dumps(stored_notes)


def test_notes_of_all_runs_are_kept(backend: ServerBackend, name: str) -> None:
    for _ in range(2):
        ingest_documents(backend, name, CALLS[0], {"id": "empty", "text": ""})
    assert len(fetch_notes(backend, name)) == 2


def test_who_may_not_keep_notes_is_told_so_and_loses_nothing_else(
    backend: ServerBackend, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(method: str, path: str) -> None:
        if quote(f"{name}-rejected") in path and method == "PUT":
            raise AccessError("the server does not let user 'reader' do PUT (403)", 403)

    limited = ServerBackend(
        InterceptedServer(backend.server, refuse), IndexOptions(analyzer="standard", replicas=0)
    )
    with caplog.at_level(logging.WARNING):
        summary = ingest_documents(limited, name, CALLS[0], {"id": "empty", "text": ""})
    assert (summary.documents, summary.failed, summary.rejected) == (1, 1, str(REJECTS))
    assert json.loads(REJECTS.read_text())["line"] == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"refused documents were not noted in '{name}-rejected' (they are in the rejects "
        f"file): the server does not let user 'reader' do PUT (403)"
    ]
    assert list_index_names(backend, name) == [f"{name}-000001"]


def test_a_document_is_never_seen_in_part(backend: ServerBackend, name: str) -> None:
    """The next ingest skips documents by `read_source_hashes`.

    A document of which a passage is missing is not among those.
    """
    ingest_documents(backend, name, CALLS[5])
    passages = make_entries(CALLS[5])
    assert len(passages) > 1
    with backend.writer(name, make_spec()) as writer:
        assert set(writer.read_source_hashes(["call-5", "nobody"])) == {"call-5"}
    backend.server.request("DELETE", f"/{name}/_doc/{quote('call-5#1')}", params={"refresh": True})
    with backend.writer(name, make_spec()) as writer:
        assert writer.read_source_hashes(["call-5"]) == {}
    assert ingest_documents(backend, name, CALLS[5]).documents == 1
    assert len([hit for hit in query_hits(backend, name) if hit.id == "call-5"]) == len(passages)
