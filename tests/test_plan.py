"""``plan``: what it says of a sample is what an index of that sample holds, and what it says of more is that many times as much."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import connect, phrase
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.covering import bounds
from hybrid_search.encoder import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import SAMPLE, Line, read
from hybrid_search.planning import figures
from hybrid_search.planning.estimate import load, plan
from hybrid_search.planning.policies import Recall, compare, drawn, exhaustive
from hybrid_search.planning.sample import Sample, take
from hybrid_search.tokens import cosines
from tests.program import invoke
from tests.tiny import DIMENSION, TinyEncoder, fill


def lines(documents: Iterable[Any]) -> list[Line]:
    data = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in documents]
    return [Line("calls.jsonl", number, each) for number, each in enumerate(data, 1)]


@pytest.fixture(scope="module")
def sampled() -> Sample:
    return take(TinyEncoder(), read([str(SAMPLE)]))


def test_a_sample_is_what_an_index_of_it_holds(sampled: Sample, calls: list[dict[str, Any]]) -> None:
    backend = MemoryBackend()
    summary = fill(backend, calls)
    found = load(sampled, "6/1", DIMENSION)
    assert (found.documents, found.passages, found.spans) == (summary.documents, summary.passages, summary.spans)
    assert found.tokens == summary.tokens  # no turn of the sample is so long that pieces of it overlap


def test_lines_that_are_no_documents_are_counted_and_left_out() -> None:
    found = take(TinyEncoder(), lines([{"id": "a", "text": "my money back"}, b"{", b"\n", {"id": "b", "text": ""}]))
    assert (found.documents, found.skipped, found.words, found.tokens) == (1, 2, 3, 3)


def test_a_sample_ends_after_so_many_documents_or_seconds() -> None:
    endless = ({"id": str(number), "text": "my money back"} for number in iter(int, 1))
    source = (Line("calls.jsonl", 1, json.dumps(each).encode()) for each in endless)
    assert take(TinyEncoder(), source, most=70).documents == 70
    assert take(TinyEncoder(), source, seconds=1e-9).documents == 64  # the first block of passages, each document one


def test_nothing_to_plan_by_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"no document with a word to plan by: 0 documents were read, and 1 lines that are none"):
        take(TinyEncoder(), lines([b"{"]))


def test_the_bytes_of_an_embedded_index_are_those_on_disk_but_for_the_graph_that_a_small_one_has_not(sample_url: str, real_encoder: Encoder) -> None:
    folder = Path(sample_url.removeprefix("embedded:"))
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".jsonl")
    said = load(take(real_encoder, read([str(SAMPLE)]), seconds=600), "6/1", 288)
    graph = said.spans * (288 + figures.GRAPH_BYTES)
    assert (said.embedded_bytes - graph) / held == pytest.approx(1, abs=0.05)


def test_the_plan_of_a_million_documents_is_the_sample_times_as_much(sampled: Sample) -> None:
    recall = Recall("6/1", 0.2, 0.5, 0.9, 20)
    found = plan(sampled, "6/1", DIMENSION, 88_000_000, [recall], on_gpu=False)
    assert found.sample.documents == 88
    assert found.load.tokens == 1_000_000 * sampled.tokens
    spans = sum(len(bounds(each.counts, "6/1")) for each in sampled.codes)
    assert found.load.spans == 1_000_000 * spans
    assert found.hours.encoder == pytest.approx(1e6 * sampled.seconds / 3600)
    assert found.hours.embedded == pytest.approx(1.43 * found.hours.encoder)
    # 8 numbers a vector: 0.0626 + 8 * 0.0005266 = 0.0668 ms each.
    assert found.hours.server == pytest.approx(1e6 * spans * 0.0668e-3 / 3600, rel=1e-3)
    assert found.hours.gpu == pytest.approx((1e6 * sampled.tokens / 1_330_000 / 3600, 1e6 * sampled.tokens / 47_000 / 3600))
    # Codes times 2.34, and floats: 50 GiB of it a shard.
    server = 1e6 * (2.34 * sampled.code_bytes + 4 * 8 * spans)
    assert found.load.server_bytes == pytest.approx(server, rel=1e-6)
    assert found.shards == -(-found.load.server_bytes // (50 * 2**30)) > 1


def test_gpu_hours_on_a_gpu_are_its_own(sampled: Sample) -> None:
    found = plan(sampled, "6/1", DIMENSION, 88, [], on_gpu=True)
    assert found.hours.gpu == (found.hours.encoder, found.hours.encoder)
    assert found.shards == 1


def test_a_policy_costs_its_vectors(sampled: Sample) -> None:
    dense, sparse = Recall("3/1", 0.4, 0.0, 0.0, 20), Recall("6/1", 0.2, 0.0, 0.0, 20)
    found = plan(sampled, "6/1", DIMENSION, 88, [dense, sparse], on_gpu=False)
    assert found.bytes_of(dense) - found.bytes_of(sparse) == pytest.approx(1000 * 0.2 * (DIMENSION + figures.GRAPH_BYTES), abs=1)


def test_the_reference_of_the_recall_scores_every_span(sampled: Sample) -> None:
    queries = np.array([phrase.vector(TinyEncoder(), each) for each in ("my money back", "waiting on hold")])
    for coded in sampled.codes[:20]:
        assert exhaustive(coded, queries) == pytest.approx([cosines(query, coded).max() for query in queries], abs=1e-5)


def test_phrases_are_words_of_the_sample(sampled: Sample) -> None:
    texts = {document.text for document, _ in sampled.cut}
    found = drawn(sampled.cut)
    assert len(found) == 40
    assert all(any(each in text for text in texts) for each in found)


def test_windows_of_all_lengths_and_places_find_all_and_few_find_less(sampled: Sample) -> None:
    """The windows of 1 to 20 words at every word are all spans but those that end a turn."""
    everything = "+".join(str(length) for length in range(1, 21)) + "/20"
    few, every = compare(TinyEncoder(), sampled, ["20/1", everything])
    assert every.recall == every.scored == 1
    assert few.recall < few.scored < every.scored
    assert few.vectors_a_word < 0.2 < 7 < every.vectors_a_word


def test_the_command_plans_for_the_sample_and_writes_nothing() -> None:
    found = invoke("plan", "--documents", "1000", "--json").json
    assert set(found) == {"policy", "dimension", "tokens_a_second", "skipped", "sample", "load", "hours", "shards", "policies"}
    assert (found["policy"], found["load"]["documents"], found["sample"]["documents"]) == ("6/1", 1000, 88)
    assert [each["policy"] for each in found["policies"]] == ["20/1", "12/1", "6/1", "6/2", "6+12/2", "3/1"]
    assert all(0 < each["recall"] <= each["scored"] <= 1 < each["bytes_per_1000_words"] for each in found["policies"])
    assert not [path for path in Path().rglob("*") if path.is_file()]


def test_a_plan_is_made_of_tables_too() -> None:
    Path("calls.csv").write_text("call,body\n1,I want my money back\n2,where is my parcel\n")
    found = invoke("plan", "calls.csv", "--columns", "id=call,text=body", "--json").json
    assert (found["sample"]["documents"], found["skipped"], found["sample"]["words"]) == (2, 0, 9)


def test_an_index_gives_its_policy_its_vectors_and_its_number_of_documents() -> None:
    Path("calls.jsonl").write_text('{"id": "a", "text": "I want my money back"}\n{"id": "b", "text": "where is my parcel"}\n')
    with connect("embedded:store", dimension=64) as client:
        client.ingest_lines(read(["calls.jsonl"]), index="calls", policy="3/1")
    one = '{"id": "c", "text": "one two three four five six"}\n'
    found = invoke("plan", "-", "--index", "calls", "--url", "embedded:store", "--json", given=one).json
    assert (found["policy"], found["dimension"], found["load"]["documents"]) == ("3/1", 64, 2)
    assert found["load"]["spans"] == 2 * 2  # six words are two windows of three, in each of two documents


def test_people_are_told_the_same() -> None:
    out = invoke("plan", "-", "--documents", "2000", given='{"id": "a", "text": "I want my money back"}\n{\n').out
    assert "sample: 1 documents, 5 tokens" in out
    assert "1 lines of it are no documents" in out
    assert "2,000 documents" in out
    assert "2,000 vectors of 288 numbers, policy 6/1" in out  # five words are one window, in each of 2,000 documents
    assert "1 primary shards of 50 GiB" in out


def test_a_policy_that_is_none_is_refused() -> None:
    assert "span policy 'x' is not of the form" in invoke("plan", "--policy", "x").error
