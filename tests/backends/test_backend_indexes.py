"""The contract of `backends.base` for indexes, tested with one body for every backend.

Other models and settings are refused, indexes are dropped, and their names are checked.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, ModelError, UsageError
from tests.helpers.stored_passages import LONG, SHORT, read_passages, write_documents
from tests.helpers.tiny_encoder import bm25_scores, fill_index, make_spec


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fingerprint", "another"),
        ("schema", 99),
        ("dimension", 3),
        ("context", "sentence"),
        ("policy", "4/1"),
    ],
)
def test_another_model_or_setting_is_refused_with_both_values_and_the_index_goes_on(
    store: Backend, name: str, value: Any
) -> None:
    write_documents(store, SHORT)
    with pytest.raises(
        ModelError, match=f"{name} {getattr(make_spec(), name)!r} .* {name} {value!r}"
    ):
        store.writer("calls", replace(make_spec(), **{name: value}))
    write_documents(store, LONG)
    assert len(read_passages(store)) == 4


def test_another_precision_may_write(store: Backend) -> None:
    write_documents(store, SHORT)
    with store.writer("calls", replace(make_spec(), precision="int8")) as writer:
        assert writer.read_source_hashes(["x"])
    assert store.read_head("calls")[0].precision == "float32"


def test_a_query_by_another_model_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    with connect(f"embedded:{tmp_path}") as client:
        fill_index(EmbeddedBackend(tmp_path), [SHORT])
        with pytest.raises(ModelError, match="'tiny-fingerprint'") as caught:
            client.query("refund")
        # The fingerprint is that of the whole model: the vectors are not truncated, because the
        # dimension is not what differs.
        assert encoder.load().info.fingerprint in str(caught.value)
        with pytest.raises(ModelError, match="'tiny-fingerprint'"):
            client.ingest([SHORT])


def test_a_dropped_index_is_gone_and_its_name_free(store: Backend) -> None:
    fill_index(store, [SHORT], index="other")
    write_documents(store, LONG)
    assert store.list_indexes() == ["calls", "other"]
    store.drop_index("calls")
    assert store.list_indexes() == ["other"]
    with pytest.raises(IndexMissingError, match="'calls'"):
        store.read_head("calls")
    store.create_index("calls", replace(make_spec(), fingerprint="another"), {})
    assert store.describe_index("calls").documents == 0
    assert store.describe_index("other").documents == 1


def test_a_dropped_index_leaves_no_file(tmp_path: Path) -> None:
    store = EmbeddedBackend(tmp_path)
    write_documents(store, LONG)
    read_passages(store)
    store.drop_index("calls")
    assert list(tmp_path.iterdir()) == []


def test_an_index_made_anew_by_another_process_is_read_anew(tmp_path: Path) -> None:
    reader, writing_backend = EmbeddedBackend(tmp_path), EmbeddedBackend(tmp_path)
    write_documents(writing_backend, LONG)
    assert len(read_passages(reader)) == 4
    writing_backend.drop_index("calls")
    with pytest.raises(IndexMissingError):
        reader.read_head("calls")
    write_documents(writing_backend, SHORT)
    assert [passage.text for passage in read_passages(reader)] == ["just this"]
    reader.close()
    writing_backend.close()


def test_what_another_process_wrote_is_seen_at_once(tmp_path: Path) -> None:
    reader, writing_backend = EmbeddedBackend(tmp_path), EmbeddedBackend(tmp_path)
    write_documents(writing_backend, SHORT)
    assert len(read_passages(reader)) == 1
    write_documents(writing_backend, {"id": "y", "text": "just more"})
    assert set(bm25_scores(reader, "just")) == {"x", "y"}
    assert len(read_passages(reader)) == 2
    reader.close()
    writing_backend.close()


def test_a_missing_index_is_named_with_those_there_are(store: Backend) -> None:
    fill_index(store, [SHORT], index="tickets")
    for ask in (
        store.read_head,
        store.describe_index,
        store.drop_index,
        make_passage_reader(store),
    ):
        with pytest.raises(
            IndexMissingError, match=r"no index 'calls' .*\(indexes there: tickets\).*ingest"
        ):
            ask("calls")


def make_passage_reader(store: Backend) -> Any:
    return lambda index: read_passages(store, index)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "-calls", "_calls", "+calls", ".calls", "Calls", "É", "é" * 101),
        *("a b", "a/b", "a\\b", "../up", "a*", "a#b", "a,b", "a:b", "a\nb", "a\0b"),
    ],
)
def test_a_name_that_no_server_takes_is_refused(store: Backend, name: str) -> None:
    with pytest.raises(UsageError, match="index name"):
        store.writer(name, make_spec())
    with pytest.raises(UsageError, match="index name"):
        store.read_head(name)
    assert store.list_indexes() == []


@pytest.mark.parametrize("name", ["calls", "calls-2026.03", "7", "anrufe_köln", "通話", "é" * 100])
def test_a_name_that_servers_take_is_taken(store: Backend, name: str) -> None:
    fill_index(store, [SHORT], index=name)
    assert store.list_indexes() == [name]
    assert store.describe_index(name).documents == 1


def test_a_writer_that_writes_nothing_leaves_an_empty_index_as_it_is(store: Backend) -> None:
    store.create_index("calls", make_spec(), {})
    write_documents(store)
    assert read_passages(store) == []
    assert bm25_scores(store, "anything") == {}
    assert store.describe_index("calls").documents == 0


def test_a_missing_index_is_named_with_the_remedy(client: Client) -> None:
    with pytest.raises(IndexMissingError, match=r"no index 'calls' .*\(indexes there: none\)"):
        client.query("refund")
    client.ingest([SHORT], index="tickets")
    with pytest.raises(IndexMissingError, match=r"\(indexes there: tickets\).*[Ii]ngest"):
        client.query("refund")
