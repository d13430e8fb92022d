"""The contract of `backends.base` for queries, tested with one body for every backend.

Metadata, conditions, both legs, and contents. The last test compares the backends' answers on the
hard sample with the reference, to the fourth decimal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import hard_sample
from hybrid_search import connect
from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.text.filters import Condition, Range
from tests.helpers.remembered_batches import remember_batches
from tests.helpers.stored_passages import SHORT, read_passages, write_documents
from tests.helpers.tiny_encoder import make_request

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
        (Condition("id", ranges=(Range((("gte", "b"),)),)), "bc"),
        (Condition("tags", ("y",)), "ab"),
        (Condition("tags", ("x", "z")), "ac"),
        (Condition("tags", ()), ""),
        (Condition("minutes", (3,)), "ab"),
        (Condition("minutes", ranges=(Range((("gt", 3), ("lte", 9.5))),)), "c"),
        (Condition("solved", (True,)), "a"),
        (Condition("customer.orders.n", (2,)), "b"),
        (Condition("number", (2**53 + 1,)), "a"),
        (Condition("date", ranges=(Range((("gte", "2026-01"), ("lt", "2026-03"))),)), "ab"),
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
    for leg in (replace(search_request, semantic=False), replace(search_request, lexical=False)):
        assert sorted(find_ids(store, leg)) == list(expected)


def find_ids(store: Backend, search_request: Request) -> list[str]:
    """Return the document of each passage that is found."""
    return [passage.document_id for passage in store.find("calls", search_request).passages]


@pytest.fixture
def english_store(store: Backend, empty_url: str) -> Backend:
    """An empty backend whose indexes have the default analyzer, ``english``."""
    if "analyzer=" in empty_url:
        pytest.skip("the analyzers of languages are not in this distribution")
    return store


def find_lexically(store: Backend, phrase: str) -> str:
    """The ids of the documents in which BM25 finds `phrase`, sorted and joined."""
    return "".join(sorted(find_ids(store, make_request(phrase, semantic=False))))


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("the", ""),
        ("it's not to be", ""),
        ("the kettle", "k"),
        ("kettles", "k"),
        ("san jose", "j"),
        ("San José", "j"),
        ("JOSÉ'S", "j"),
        ("cant", ""),
        ("can't", "k"),
        ("can’t", "k"),
        ("t", ""),
        ("3.50", "k"),
        ("50", ""),
        ("strasse", "s"),
        ("Straße", "s"),
        ("退", "s"),
    ],
)
def test_terms_are_cut_alike_on_every_backend(
    english_store: Backend, phrase: str, expected: str
) -> None:
    write_documents(
        english_store,
        {"id": "k", "text": "It is the kettle that we can't use, the one for 3.50."},
        {"id": "j", "text": "José's flight to San José, and that is it."},
        {"id": "s", "text": "Die Straße, 退款。"},
    )
    assert find_lexically(english_store, phrase) == expected


def test_a_word_twice_in_the_phrase_counts_twice_on_every_backend(english_store: Backend) -> None:
    write_documents(english_store, {"id": "a", "text": "a card"}, {"id": "b", "text": "a bill"})
    once, twice = (
        english_store.find("calls", make_request(phrase, semantic=False)).passages
        for phrase in ("card", "card card")
    )
    assert [two.bm25 / one.bm25 for one, two in zip(once, twice, strict=True)] == [
        pytest.approx(2.0)
    ]


def test_a_list_matches_a_range_only_if_one_element_lies_in_all_of_it(store: Backend) -> None:
    write_documents(
        store,
        {"id": "around", "text": "word", "n": [1, 9]},
        {"id": "within", "text": "word", "n": [1, 5]},
    )
    search_request = make_request(
        "word", conditions=(Condition("n", ranges=(Range((("gt", 3), ("lt", 7))),)),)
    )
    assert find_ids(store, search_request) == ["within"]


def test_the_layout_keeps_speakers_times_and_the_keys_we_do_not_know(store: Backend) -> None:
    turns = [
        {"speaker": "agent", "text": "Hello.", "start_ms": 0, "end_ms": 900, "mood": {"calm": [1]}},
        {"text": "Hi.", "channel": 2, "word_times": [[0, 3, 1000, 1200]]},
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
        {  # each number less the one before it, and the full stop belongs to no word
            "turn": 1,
            "start": 7,
            "end": 10,
            "word_times": [[0, 2], [1000, 200]],
            "extra": {"channel": 2},
        },
    ]


def test_a_span_in_a_long_turn_has_the_times_of_its_words(client: Client) -> None:
    """A hit in a turn of 12 minutes leads to its second: each word takes 250 ms."""
    words = [f"word{number}" for number in range(3000)]
    words[2000:2003] = ["money", "back", "please"]
    client.ingest([{"id": "x", "turns": [build_timed_turn(words)]}])
    (hit,) = client.query("money back", spans=1, spans_by="cosine")
    (span,) = hit.spans
    assert span.text == "money back"
    assert (span.start_ms, span.end_ms, span.times) == (500_000, 500_500, "words")


def build_timed_turn(words: list[str]) -> dict[str, Any]:
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    word_times = [
        [start, start + len(word), 250 * number, 250 * (number + 1)]
        for number, (start, word) in enumerate(zip(starts, words, strict=False))
    ]
    return {"text": " ".join(words), "word_times": word_times}


def test_a_leg_that_was_not_asked_for_finds_nothing_but_scores(store: Backend) -> None:
    write_documents(store, SHORT, {"id": "y", "text": "another"})
    (by_words,) = store.find("calls", make_request("just", semantic=False)).passages
    by_spans = store.find("calls", make_request("just", lexical=False)).passages
    scores = {passage.document_id: passage.bm25 for passage in by_spans}
    assert scores == {"x": pytest.approx(by_words.bm25), "y": 0.0}
    assert len(by_words.tokens.words) == 2


def test_each_leg_gives_at_most_its_window(store: Backend) -> None:
    write_documents(store, *[{"id": str(number), "text": f"word {number}"} for number in range(20)])
    search_request = make_request("word", window=7)
    for leg in (replace(search_request, semantic=False), replace(search_request, lexical=False)):
        assert len(find_ids(store, leg)) == 7


def test_passages_are_read_in_the_order_asked_for_with_bm25_0_where_nothing_matches(
    store: Backend,
) -> None:
    write_documents(store, {"id": "x", "text": "apple"}, {"id": "y", "text": "pear"})
    search_request = make_request("pear")
    keys = [passage.key for passage in store.find("calls", search_request).passages]
    for order in (keys, keys[::-1]):
        passages = store.read_passages("calls", search_request, order)
        assert [passage.key for passage in passages] == order
    assert {passage.document_id: passage.bm25 > 0 for passage in passages} == {
        "x": False,
        "y": True,
    }


def test_an_empty_index_gives_an_empty_result(client: Client) -> None:
    client.setup()
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


TOPICS = hard_sample.read_phrases()


@pytest.fixture(scope="module")
def reference(
    calls: list[dict[str, Any]], batches_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The hard sample in the memory backend, where everything is exact."""
    with connect("memory:") as client:
        with remember_batches(batches_folder):
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
            client.query(phrase, alpha=alpha, group_by=group_by, spans_by="cosine").hits
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
