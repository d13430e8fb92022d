"""The contract of `backends.base`, tested with one body for every backend.

The last test compares their answers on the bundled sample, to the fourth decimal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import (
    Backend,
    OwnHybridBackend,
    RequestBackend,
    VersionedBackend,
)
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, ModelError, UsageError
from hybrid_search.ingest.sources.files import SAMPLE
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.text.filters import Condition
from tests.helpers.tiny_encoder import (
    bm25_scores,
    fill_index,
    make_entries,
    make_request,
    make_spec,
)

LONG = {"id": "x", "turns": [{"text": f"turn{number} " + "blah " * 60} for number in range(4)]}
SHORT = {"id": "x", "text": "just this"}


@pytest.fixture
def store(empty_url: str) -> Iterator[Backend]:
    """An empty backend of each kind, without an encoder."""
    backend = open_backend(empty_url)
    yield backend
    backend.close()


@pytest.fixture(params=["memory", "embedded"])
def local_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """An empty backend of each kind that shows at once what its writer does."""
    backend = open_backend(
        "memory:" if request.param == "memory" else f"embedded:{tmp_path / 'store'}"
    )
    yield backend
    backend.close()


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """Everything that a store returns of a passage."""

    document_id: str
    ordinal: int
    start: int
    text: str
    layout: str
    metadata: str


def read_passages(store: Backend, index: str = "calls") -> list[PassageRecord]:
    """Return all passages of a small index."""
    search_request = make_request("anything", window=10_000, lexical=False)
    keys = list(store.find_candidates(index, search_request).semantic)
    contents = store.fetch_contents(index, keys)
    records = []
    for passage in store.complete_candidates(index, search_request, keys):
        content = contents[passage.key]
        records.append(
            PassageRecord(
                passage.document_id,
                passage.ordinal,
                content.start,
                content.text,
                content.layout,
                content.metadata,
            )
        )
    return sorted(records, key=lambda record: (record.document_id, record.ordinal))


def write_documents(store: Backend, *documents: Mapping[str, Any]) -> list[str]:
    """Write documents, and return the reasons of those that were refused."""
    with store.writer("calls", make_spec()) as writer:
        return [
            refusal.reason
            for document in documents
            for refusal in writer.write(make_entries(document))
        ]


def test_servers_have_all_capabilities_and_the_other_stores_none() -> None:
    """The annotations let mypy compare the signatures, which ``isinstance`` does not."""
    versioned: type[VersionedBackend] = ServerBackend
    own_hybrid: type[OwnHybridBackend] = ServerBackend
    requesting: type[RequestBackend] = ServerBackend
    assert versioned is own_hybrid is requesting
    for capability in (VersionedBackend, OwnHybridBackend, RequestBackend):
        assert issubclass(ServerBackend, capability)
        assert not issubclass(EmbeddedBackend, capability)
        assert not issubclass(MemoryBackend, capability)


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


def test_a_deleted_passage_is_left_out_of_what_is_completed(store: Backend) -> None:
    write_documents(store, {"id": "x", "text": "first"}, {"id": "y", "text": "second"})
    search_request = make_request("first second")
    candidates = store.find_candidates("calls", search_request)
    with store.writer("calls", make_spec()) as writer:
        writer.delete(["x"])
    assert [
        passage.document_id
        for passage in store.complete_candidates("calls", search_request, list(candidates.lexical))
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
        for passage in store.complete_candidates(
            "calls", search_request, [passage.key for passage in passages]
        )
    ] == [row[:2] for row in rows]


def test_a_walk_through_an_empty_index_lists_nothing_and_through_none_is_an_error(
    store: Backend,
) -> None:
    write_documents(store)
    assert list(store.iterate_passages("calls")) == []
    with pytest.raises(IndexMissingError):
        list(store.iterate_passages("other"))


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


def test_a_refused_document_leaves_the_old_version_and_its_neighbours(store: Backend) -> None:
    write_documents(store, {**SHORT, "minutes": 3})
    reasons = write_documents(
        store,
        {"id": "a", "text": "before"},
        {**LONG, "minutes": "three"},
        {"id": "b", "text": "after", "minutes": 4.5},
    )
    assert reasons == [
        "metadata field 'minutes' is a string here and a number in the index: "
        "give it one type, or another name"
    ]
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


METADATA: dict[str, Any] = {
    "sector": "bank",
    "minutes": 3.5,
    "number": 2**53 + 1,
    "solved": False,
    "nothing": None,
    "tags": ["a", "b"],
    "empty": [],
    "customer": {"tier": "gold", "orders": [{"n": 1}, {"n": 2}], "none": {}},
    "ключ.dotted": "Käse 🧀",
}


def test_metadata_comes_back_unchanged(store: Backend) -> None:
    write_documents(store, {**SHORT, **METADATA})
    (record,) = read_passages(store)
    assert json.loads(record.metadata) == METADATA
    assert type(json.loads(record.metadata)["minutes"]) is float


def test_the_fields_of_an_index_are_those_of_its_metadata(store: Backend) -> None:
    write_documents(store, {**SHORT, **METADATA})
    assert store.read_head("calls")[1] == {
        "customer": "object",
        "customer.none": "object",
        "customer.orders": "object",
        "customer.orders.n": "number",
        "customer.tier": "string",
        "minutes": "number",
        "number": "number",
        "sector": "string",
        "solved": "boolean",
        "tags": "string",
        "ключ": "object",
        "ключ.dotted": "string",
    }


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("id", ("a", "c", "nobody")), "ac"),
        (Condition("id", ranges=(("gte", "b"),)), "bc"),
        (Condition("tags", ("y",)), "ab"),
        (Condition("tags", ("x", "z")), "ac"),
        (Condition("tags", ()), ""),
        (Condition("minutes", (3,)), "ab"),
        (Condition("minutes", ranges=(("gt", 3), ("lte", 9.5))), "c"),
        (Condition("solved", (True,)), "a"),
        (Condition("customer.orders.n", (2,)), "b"),
        (Condition("number", (2**53 + 1,)), "a"),
        (Condition("date", ranges=(("gte", "2026-01"), ("lt", "2026-03"))), "ab"),
    ],
)
def test_conditions_hold_in_both_legs(store: Backend, condition: Condition, expected: str) -> None:
    write_documents(
        store,
        {
            "id": "a",
            "text": "word",
            "tags": ["x", "y"],
            "minutes": 3,
            "solved": True,
            "number": 2**53 + 1,
            "date": "2026-01-15",
        },
        {
            "id": "b",
            "text": "word",
            "tags": "y",
            "minutes": 3.0,
            "solved": False,
            "date": "2026-02",
            "customer": {"orders": [{"n": 1}, {"n": 2}]},
        },
        {
            "id": "c",
            "text": "word",
            "tags": ["z"],
            "minutes": 9.5,
            "number": 2**53,
            "date": "2026-03",
        },
    )
    search_request = make_request("word", conditions=(condition,))
    candidates = store.find_candidates("calls", search_request)
    for leg in (candidates.lexical, candidates.semantic):
        assert sorted(
            passage.document_id
            for passage in store.complete_candidates("calls", search_request, list(leg))
        ) == list(expected)


def test_all_conditions_must_hold(store: Backend) -> None:
    write_documents(
        store,
        {"id": "a", "text": "word", "p": 1, "q": 1},
        {"id": "b", "text": "word", "p": 1, "q": 2},
        {"id": "c", "text": "word", "q": 2},
    )
    search_request = make_request("word", conditions=(Condition("p", (1,)), Condition("q", (2,))))
    assert [
        passage.document_id
        for passage in store.complete_candidates(
            "calls", search_request, list(store.find_candidates("calls", search_request).semantic)
        )
    ] == ["b"]


def test_a_list_matches_a_range_only_if_one_element_lies_in_all_of_it(store: Backend) -> None:
    write_documents(
        store,
        {"id": "around", "text": "word", "n": [1, 9]},
        {"id": "within", "text": "word", "n": [1, 5]},
    )
    search_request = make_request(
        "word", conditions=(Condition("n", ranges=(("gt", 3), ("lt", 7))),)
    )
    assert [
        passage.document_id
        for passage in store.complete_candidates(
            "calls", search_request, list(store.find_candidates("calls", search_request).lexical)
        )
    ] == ["within"]


def test_the_layout_keeps_speakers_times_and_the_keys_we_do_not_know(store: Backend) -> None:
    turns = [
        {"speaker": "agent", "text": "Hello.", "start_ms": 0, "end_ms": 900, "mood": {"calm": [1]}},
        {"text": "Hi.", "channel": 2},
    ]
    write_documents(store, {"id": "x", "turns": turns})
    (record,) = read_passages(store)
    assert record.text == "Hello.\nHi."
    assert json.loads(record.layout) == [
        {
            "turn": 0,
            "start": 0,
            "end": 6,
            "speaker": "agent",
            "start_ms": 0,
            "end_ms": 900,
            "extra": {"mood": {"calm": [1]}},
        },
        {"turn": 1, "start": 7, "end": 10, "extra": {"channel": 2}},
    ]


def test_speakers_and_times_come_back_on_the_spans(client: Client) -> None:
    turns = [
        {"speaker": "agent", "text": "How can I help?", "start_ms": 0, "end_ms": 900},
        {"speaker": "customer", "text": "Give me my money back."},
    ]
    client.ingest([{"id": "x", "turns": turns}])
    (hit,) = client.query("How can I help", spans=20)
    spans = {span.turn: span for span in hit.spans}
    assert (spans[0].speaker, spans[0].start_ms, spans[0].end_ms) == ("agent", 0, 900)
    assert (spans[1].speaker, spans[1].start_ms, spans[1].end_ms) == ("customer", None, None)


def test_a_leg_that_was_not_asked_for_is_empty(store: Backend) -> None:
    write_documents(store, SHORT)
    assert list(store.find_candidates("calls", make_request("just", semantic=False)).semantic) == []
    assert list(store.find_candidates("calls", make_request("just", lexical=False)).lexical) == []


def test_each_leg_gives_at_most_its_window(store: Backend) -> None:
    write_documents(store, *[{"id": str(number), "text": f"word {number}"} for number in range(20)])
    candidates = store.find_candidates("calls", make_request("word", window=7))
    assert (len(candidates.lexical), len(candidates.semantic)) == (7, 7)


def test_passages_are_completed_in_the_order_asked_for_with_bm25_0_where_nothing_matches(
    store: Backend,
) -> None:
    write_documents(store, {"id": "x", "text": "apple"}, {"id": "y", "text": "pear"})
    search_request = make_request("pear")
    keys = list(store.find_candidates("calls", search_request).semantic)
    for order in (keys, keys[::-1]):
        passages = store.complete_candidates("calls", search_request, order)
        assert [passage.key for passage in passages] == order
    assert {passage.document_id: passage.bm25 > 0 for passage in passages} == {
        "x": False,
        "y": True,
    }


def test_another_model_is_refused_with_both_fingerprints(store: Backend) -> None:
    write_documents(store, SHORT)
    with pytest.raises(
        ModelError,
        match=r"'calls' was written with fingerprint 'tiny-fingerprint' "
        r".*this is fingerprint 'another'",
    ):
        store.writer("calls", replace(make_spec(), fingerprint="another"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("schema", 99), ("dimension", 3), ("context", "sentence"), ("policy", "5/1")],
)
def test_other_settings_are_refused_with_both_values(store: Backend, name: str, value: Any) -> None:
    write_documents(store, SHORT)
    with pytest.raises(
        ModelError, match=f"{name} {getattr(make_spec(), name)!r} .* {name} {value!r}"
    ):
        store.writer("calls", replace(make_spec(), **{name: value}))


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


def test_a_refused_model_leaves_the_index_to_its_own(store: Backend) -> None:
    write_documents(store, SHORT)
    with pytest.raises(ModelError):
        store.writer("calls", replace(make_spec(), dimension=3))
    write_documents(store, LONG)
    assert len(read_passages(store)) == 4


def test_a_dropped_index_is_gone_and_its_name_free(store: Backend) -> None:
    fill_index(store, [SHORT], index="other")
    write_documents(store, LONG)
    assert store.list_indexes() == ["calls", "other"]
    store.drop_index("calls")
    assert store.list_indexes() == ["other"]
    with pytest.raises(IndexMissingError, match="'calls'"):
        store.read_head("calls")
    with store.writer("calls", replace(make_spec(), fingerprint="another")):
        pass
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
        "",
        ".",
        "..",
        "-calls",
        "_calls",
        "+calls",
        ".calls",
        "Calls",
        "a b",
        "a/b",
        "a\\b",
        "../up",
        "a*",
        "a#b",
    ],
)
def test_a_name_that_no_server_takes_is_refused(store: Backend, name: str) -> None:
    with pytest.raises(UsageError, match="index name"):
        store.writer(name, make_spec())
    with pytest.raises(UsageError, match="index name"):
        store.read_head(name)
    assert store.list_indexes() == []


@pytest.mark.parametrize(
    "name", ["a?", "a,b", "a:b", 'a"b', "a<b", "a>b", "a|b", "a\nb", "a\0b", "É", "é" * 101]
)
def test_more_names_that_no_server_takes(store: Backend, name: str) -> None:
    with pytest.raises(UsageError, match="index name"):
        store.writer(name, make_spec())


@pytest.mark.parametrize("name", ["calls", "calls-2026.03", "7", "anrufe_köln", "通話", "é" * 100])
def test_a_name_that_servers_take_is_taken(store: Backend, name: str) -> None:
    fill_index(store, [SHORT], index=name)
    assert store.list_indexes() == [name]
    assert store.describe_index(name).documents == 1


def test_a_writer_that_wrote_nothing_leaves_an_empty_index(store: Backend) -> None:
    write_documents(store)
    assert read_passages(store) == []
    assert bm25_scores(store, "anything") == {}
    assert store.describe_index("calls").documents == 0


def test_an_empty_index_gives_an_empty_result(client: Client) -> None:
    client.ingest([])
    for alpha in (0.0, 0.5, 1.0):
        for fusion in FUSIONS:
            result = client.query("refund", alpha=alpha, fusion=fusion)
            assert (result.hits, result.total) == ([], 0)


def test_a_text_without_a_word_hurts_nobody(client: Client) -> None:
    client.ingest(
        [
            {"id": "dots", "text": "... ?!", "kind": "empty"},
            {"id": "refund", "text": "refund please"},
        ]
    )
    assert client.query("refund").hits[0].id == "refund"
    assert all(
        hit.spans == [] for hit in client.query("refund", where={"kind": "empty"}, explain=True)
    )


def test_a_missing_index_is_named_with_the_remedy(client: Client) -> None:
    with pytest.raises(IndexMissingError, match=r"no index 'calls' .*\(indexes there: none\)"):
        client.query("refund")
    client.ingest([SHORT], index="tickets")
    with pytest.raises(IndexMissingError, match=r"\(indexes there: tickets\).*[Ii]ngest"):
        client.query("refund")


TOPICS = [
    json.loads(line)["phrase"]
    for line in (SAMPLE.parent / "topics.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def reference(
    calls: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The bundled sample in the memory backend, where everything is exact."""
    with connect("memory:") as client:
        client.ingest(calls, rejects=tmp_path_factory.mktemp("reference") / "rejected.jsonl")
        yield client


@pytest.mark.parametrize(
    ("alpha", "group_by"), [(0.0, "passage"), (0.5, "document"), (1.0, "passage")]
)
def test_the_backends_agree_on_the_sample(
    sample: Client, reference: Client, alpha: float, group_by: str
) -> None:
    """Compare hits, their scores and their spans with those of the reference.

    Of a document only the first span is compared, the one its score is computed from. The others
    come from all its passages within the window, and among passages with equal scores any may be
    the last in the window.
    """
    assert len(TOPICS) == 46
    for phrase in TOPICS:
        expected, hits = (
            client.query(phrase, alpha=alpha, group_by=group_by).hits
            for client in (reference, sample)
        )
        assert [(hit.id, hit.passage) for hit in hits] == [
            (hit.id, hit.passage) for hit in expected
        ], phrase
        for ours, theirs in zip(hits, expected, strict=True):
            compared_spans = [
                hit.spans[:1] if group_by == "document" else hit.spans for hit in (ours, theirs)
            ]
            numbers = [
                (hit.score, hit.bm25, hit.cosine, *(span.cosine for span in spans))
                for hit, spans in zip((ours, theirs), compared_spans, strict=True)
            ]
            assert numbers[0] == pytest.approx(numbers[1], abs=1e-4), phrase
            assert [replace(span, cosine=0) for span in compared_spans[0]] == [
                replace(span, cosine=0) for span in compared_spans[1]
            ], phrase
            assert (ours.metadata, ours.text, ours.start) == (
                theirs.metadata,
                theirs.text,
                theirs.start,
            ), phrase
