"""The contract of `backends.base` for writing, tested with one body for every backend.

Replacing and deleting documents, incomplete and refused ones, counts, scans, and source hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.text import word_codes
from tests.helpers.stored_passages import LONG, SHORT, read_passages, write_documents
from tests.helpers.tiny_encoder import bm25_scores, make_entries, make_request, make_spec


@pytest.fixture(params=["memory", "embedded"])
def local_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """An empty backend of each kind that shows at once what its writer does."""
    place = "" if request.param == "memory" else tmp_path / "store"
    backend = open_backend(f"{request.param}:{place}")
    yield backend
    backend.close()


def test_only_servers_know_times_and_only_embedded_indexes_count_commits(
    local_store: Backend,
) -> None:
    write_documents(local_store, SHORT)
    with pytest.raises(UsageError, match="only a server knows"):
        list(local_store.scan_codes("calls", written_since=datetime.now(UTC)))
    is_embedded = isinstance(local_store, EmbeddedBackend)
    assert (local_store.count_commits("calls") is not None) == is_embedded
    assert local_store.build_request_bodies("calls", make_request("just")) == []


def test_a_shorter_version_leaves_no_passage_of_the_longer_one(store: Backend) -> None:
    write_documents(store, LONG, {"id": "other", "text": "it stays"})
    assert store.describe_index("calls").passages == 5
    write_documents(store, SHORT)
    assert [
        (passage.document_id, passage.ordinal, passage.text) for passage in read_passages(store)
    ] == [("other", 0, "it stays"), ("x", 0, "just this")]
    assert bm25_scores(store, "turn0 turn3 blah") == {}


def test_a_longer_version_replaces_a_shorter_one(store: Backend) -> None:
    write_documents(store, SHORT)
    write_documents(store, LONG)
    assert [passage.ordinal for passage in read_passages(store)] == [0, 1, 2, 3]
    assert bm25_scores(store, "just") == {}


def test_the_last_version_in_one_run_wins(store: Backend) -> None:
    write_documents(store, LONG, SHORT, {**SHORT, "text": "the last word"})
    assert [passage.text for passage in read_passages(store)] == ["the last word"]


def test_deleted_documents_are_gone_from_both_legs_and_from_the_counts(store: Backend) -> None:
    write_documents(
        store, LONG, {"id": "y", "text": "gone soon"}, {"id": "z", "text": "gone never"}
    )
    with store.writer("calls", make_spec()) as writer:
        assert writer.delete(["x", "y", "nobody"]) == 2
        assert writer.delete(["x", "y"]) == 0
    assert [passage.document_id for passage in read_passages(store)] == ["z"]
    assert set(bm25_scores(store, "gone blah")) == {"z"}
    info = store.describe_index("calls")
    assert (info.documents, info.passages) == (1, 1)


def test_an_index_whose_last_document_was_deleted_is_empty_and_can_be_filled(
    store: Backend,
) -> None:
    write_documents(store, LONG)
    with store.writer("calls", make_spec()) as writer:
        writer.delete(["x"])
    assert read_passages(store) == []
    write_documents(store, SHORT)
    assert [passage.text for passage in read_passages(store)] == ["just this"]


def test_a_deleted_passage_is_left_out_of_what_is_read(store: Backend) -> None:
    write_documents(store, {"id": "x", "text": "first"}, {"id": "y", "text": "second"})
    search_request = make_request("first second")
    found = store.find("calls", search_request).passages
    with store.writer("calls", make_spec()) as writer:
        writer.delete(["x"])
    assert [
        passage.document_id
        for passage in store.read_passages("calls", search_request, [item.key for item in found])
    ] == ["y"]


def test_documents_passages_and_spans_are_counted(store: Backend) -> None:
    write_documents(store, LONG, SHORT | {"id": "y"})
    info = store.describe_index("calls")
    assert (info.documents, info.passages) == (2, 5)
    assert info.spans == sum(entry.spans for entry in [*make_entries(LONG), *make_entries(SHORT)])
    assert info.spec == make_spec()


def test_a_walk_lists_every_passage_once_document_by_document_and_finds_no_fault(
    store: Backend,
) -> None:
    write_documents(
        store,
        LONG,
        SHORT | {"id": "y"},
        {"id": "dots", "text": "..."},
        SHORT | {"id": "z"},
        {**LONG, "id": "y"},
    )
    passages = list(store.iterate_passages("calls"))
    rows = [
        (
            passage.document_id,
            passage.ordinal,
            passage.passages,
            passage.source_hash,
            passage.faults,
        )
        for passage in passages
    ]
    documents: dict[str, dict[str, Any]] = {
        "x": LONG,
        "y": LONG,
        "z": SHORT,
        "dots": {"text": "..."},
    }
    expected = {
        id_: make_entries({**document, "id": id_})[0] for id_, document in documents.items()
    }
    expected_rows = [
        (id_, number, entry.passages, entry.source_hash, ())
        for id_, entry in expected.items()
        for number in range(entry.passages)
    ]
    assert sorted(rows) == sorted(expected_rows)
    ids_in_order = [id_ for id_, _ in groupby(row[0] for row in rows)]
    assert [row[0] for row in rows] == [
        id_ for id_ in ids_in_order for _ in range(expected[id_].passages)
    ]
    search_request = make_request("anything", window=10)
    assert [
        (passage.document_id, passage.ordinal)
        for passage in store.read_passages(
            "calls", search_request, [passage.key for passage in passages]
        )
    ] == [row[:2] for row in rows]


def test_a_scan_lists_all_token_codes_and_goes_on_behind_any_passage(store: Backend) -> None:
    dots: dict[str, Any] = {"id": "dots", "text": "..."}
    documents: list[dict[str, Any]] = [LONG, SHORT | {"id": "y"}, dots]
    write_documents(store, *documents)
    passages = list(store.scan_codes("calls"))
    expected = {
        (entry.document.id, entry.passage.ordinal): entry
        for document in documents
        for entry in make_entries(document)
    }
    assert len(passages) == len(expected)
    for passage in passages:
        entry = expected[passage.document_id, passage.ordinal]
        assert passage.start == entry.passage.start
        assert word_codes.to_bytes(passage.tokens) == word_codes.to_bytes(entry.tokens)
    places = [(passage.document_id, passage.ordinal) for passage in passages]
    ids = [id_ for id_, _ in groupby(name for name, _ in places)]
    assert places == [place for id_ in ids for place in sorted(expected) if place[0] == id_]
    for number, passage in enumerate(passages):
        position = json.loads(json.dumps(passage.position))
        rest = store.scan_codes("calls", position)
        assert [(other.document_id, other.ordinal) for other in rest] == places[number + 1 :]
    keys = [passage.key for passage in passages]
    assert set(store.fetch_contents("calls", keys)) == set(keys)


def test_a_walk_through_an_empty_index_lists_nothing_and_through_none_is_an_error(
    store: Backend,
) -> None:
    store.create_index("calls", make_spec(), {})
    for walk in (store.iterate_passages, store.scan_codes):
        assert list(walk("calls")) == []
        with pytest.raises(IndexMissingError):
            list(walk("other"))


def test_what_is_known_is_the_hash_of_what_was_wholly_written(store: Backend) -> None:
    with store.writer("calls", make_spec()) as writer:
        assert writer.read_source_hashes(["x", "y"]) == {}
        writer.write(make_entries(SHORT))
        writer.write(make_entries({**LONG, "id": "y"})[:-1])
        assert set(writer.read_source_hashes(["x", "y"])) <= {"x"}
    with store.writer("calls", make_spec()) as writer:
        assert writer.read_source_hashes(["x", "y"]) == {"x": make_entries(SHORT)[0].source_hash}
    assert store.describe_index("calls").documents == 1


def test_known_are_the_documents_that_were_asked_for(store: Backend) -> None:
    write_documents(store, SHORT, {**LONG, "id": "y"})
    with store.writer("calls", make_spec()) as writer:
        assert writer.read_source_hashes([]) == {}
        assert set(writer.read_source_hashes(["y", "nobody"])) == {"y"}
        assert set(writer.read_source_hashes([*map(str, range(2500)), "x", "y"])) == {"x", "y"}


def test_what_is_known_of_a_new_version_is_its_hash(store: Backend) -> None:
    for document in (LONG, SHORT):
        write_documents(store, document)
        with store.writer("calls", make_spec()) as writer:
            assert writer.read_source_hashes(["x"]) == {"x": make_entries(document)[0].source_hash}


def test_a_store_with_transactions_knows_at_once_what_it_took(local_store: Backend) -> None:
    with local_store.writer("calls", make_spec()) as writer:
        writer.write(make_entries(SHORT))
        writer.write(make_entries({**LONG, "id": "y"})[:-1])
        assert writer.read_source_hashes(["x", "y"]) == {"x": make_entries(SHORT)[0].source_hash}


def test_a_document_that_was_not_written_to_its_end_leaves_the_old_version(store: Backend) -> None:
    write_documents(store, SHORT)
    with pytest.raises(KeyboardInterrupt), store.writer("calls", make_spec()) as writer:
        writer.write(make_entries(LONG)[:-1])
        raise KeyboardInterrupt
    assert [passage.text for passage in read_passages(store)] == ["just this"]
    write_documents(store, LONG)
    assert len(read_passages(store)) == 4


def test_a_document_is_not_seen_before_its_last_passage(store: Backend) -> None:
    write_documents(store, SHORT)
    with store.writer("calls", make_spec()) as writer:
        for entry in make_entries(LONG):
            assert [passage.text for passage in read_passages(store)] == ["just this"]
            writer.write([entry])
    assert len(read_passages(store)) == 4


def test_a_store_with_transactions_shows_a_document_with_its_last_passage(
    local_store: Backend,
) -> None:
    write_documents(local_store, SHORT)
    with local_store.writer("calls", make_spec()) as writer:
        writer.write(make_entries(LONG))
        assert len(read_passages(local_store)) == 4


def test_a_refusal_names_a_document_that_has_the_other_type(local_store: Backend) -> None:
    write_documents(local_store, {**SHORT, "minutes": "three", "agent": {"name": "Ann"}})
    assert write_documents(
        local_store, {"id": "y", "text": "y", "minutes": 3}, {"id": "z", "text": "z", "agent": 1}
    ) == [
        "metadata field 'minutes' is a number here and a string in the index, "
        "as in document 'x': give it one type, or another name",
        "metadata field 'agent' is a number here and a object in the index, "
        "as in document 'x': give it one type, or another name",
    ]


@pytest.mark.parametrize(
    "bad", [{"minutes": "three"}, {"minutes": {"of": {"talk": 3}}}, {"minutes": True}]
)
def test_a_type_is_free_when_no_other_document_has_it_any_more(
    local_store: Backend, bad: dict[str, Any]
) -> None:
    """Corrected, or deleted: one bad document does not refuse all others for ever."""
    good = {"id": "y", "text": "y", "minutes": 3}
    write_documents(local_store, {**SHORT, **bad})
    assert len(write_documents(local_store, good)) == 1
    assert write_documents(local_store, {**SHORT, "minutes": 4.5}, good) == []
    assert local_store.read_head("calls")[1]["minutes"] == "number"
    assert len(write_documents(local_store, {"id": "z", "text": "z", **bad})) == 1
    with local_store.writer("calls", make_spec()) as writer:
        assert writer.delete(["x", "y"]) == 2
    assert write_documents(local_store, {"id": "z", "text": "z", **bad}) == []


def test_a_document_with_two_types_of_a_field_is_refused_even_if_its_old_version_had_it(
    local_store: Backend,
) -> None:
    write_documents(local_store, {**SHORT, "minutes": 3})
    (reason,) = write_documents(local_store, {**LONG, "minutes": ["three", 3]})
    assert reason.startswith("metadata field 'minutes' is a number here and a string")
    assert local_store.read_head("calls")[1] == {"minutes": "number"}


def test_a_refused_document_leaves_the_old_version_and_its_neighbours(store: Backend) -> None:
    write_documents(store, {**SHORT, "minutes": 3})
    reasons = write_documents(
        store,
        {"id": "a", "text": "before", "minutes": 2},
        {**LONG, "minutes": "three"},
        {"id": "b", "text": "after", "minutes": 4.5},
    )
    (reason,) = reasons
    assert reason.startswith("metadata field 'minutes' is a string here and a number in the index")
    assert ": give it one type, or another name" in reason
    assert [(passage.document_id, passage.text) for passage in read_passages(store)] == [
        ("a", "before"),
        ("b", "after"),
        ("x", "just this"),
    ]


def test_a_refused_document_teaches_no_field(store: Backend) -> None:
    write_documents(store, {**SHORT, "minutes": 3})
    write_documents(store, {"id": "y", "text": "t", "brand": "new", "minutes": "three"})
    assert store.read_head("calls")[1] == {"minutes": "number"}


def test_two_types_within_one_document_are_refused(store: Backend) -> None:
    (reason,) = write_documents(store, {"id": "y", "text": "t", "tags": ["a", 1]})
    assert "'tags' is a number here and a string" in reason


def test_the_passages_of_a_document_are_listed_in_their_order(store: Backend) -> None:
    write_documents(store, {"id": "y", "text": "another"}, LONG)
    keys = store.list_passages("calls", "x")
    contents = store.fetch_contents("calls", keys)
    assert [contents[key].text for key in keys] == [
        passage.text for passage in read_passages(store) if passage.document_id == "x"
    ]
    assert store.list_passages("calls", "nobody") == []
    with pytest.raises(IndexMissingError):
        store.list_passages("nothing", "x")
