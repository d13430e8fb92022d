"""Test `plan`: a sample is counted as an index counts it, and a plan is a multiple of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import hard_sample
from hybrid_search import connect
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources.files import read
from hybrid_search.ingest.types import SourceLine
from hybrid_search.maintenance import plan as planning
from hybrid_search.maintenance.plan import Sample, measure_load, plan, take_sample
from hybrid_search.text import word_codes
from hybrid_search.text.window_policy import window_bounds
from tests.helpers.cli import invoke_cli
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import DIMENSION, TinyEncoder, fill_index


@pytest.fixture(scope="module")
def plan_sample() -> Sample:
    return take_sample(TinyEncoder(), read([str(hard_sample.CALLS)]))


def test_a_sample_is_what_an_index_of_it_holds(
    plan_sample: Sample, calls: list[dict[str, Any]]
) -> None:
    backend = MemoryBackend()
    summary = fill_index(backend, calls)
    sample_load = measure_load(plan_sample, DEFAULT_POLICY, DIMENSION)
    assert (sample_load.documents, sample_load.passages, sample_load.spans) == (
        summary.documents,
        summary.passages,
        summary.spans,
    )
    assert (
        sample_load.tokens == summary.tokens
    )  # no turn of the sample is so long that pieces of it overlap


def test_lines_that_are_no_documents_are_counted_and_left_out() -> None:
    sample = take_sample(
        TinyEncoder(),
        make_lines([{"id": "a", "text": "my money back"}, b"{", b"\n", {"id": "b", "text": ""}]),
    )
    assert (sample.documents, sample.skipped, sample.tokens) == (1, 2, 3)
    assert measure_load(sample, DEFAULT_POLICY, DIMENSION).words == 3


def test_a_sample_ends_after_so_many_documents_or_seconds() -> None:
    endless = ({"id": str(number), "text": "my money back"} for number in iter(int, 1))
    source = (SourceLine("calls.jsonl", 1, json.dumps(document).encode()) for document in endless)
    assert take_sample(TinyEncoder(), source, most=70).documents == 70
    assert (
        take_sample(TinyEncoder(), source, seconds=1e-9).documents == 64
    )  # the first block of passages, each document one


def test_nothing_to_plan_by_is_an_error() -> None:
    with pytest.raises(
        UsageError,
        match=r"no words: 0 documents and 1 lines that are not documents were read",
    ):
        take_sample(TinyEncoder(), make_lines([b"{"]))


@pytest.mark.usefixtures("_remembered_batches")
def test_the_bytes_of_an_embedded_index_are_those_on_disk_of_a_small_one(
    sample_url: str, real_encoder: Encoder
) -> None:
    folder = Path(sample_url.removeprefix("embedded:"))
    disk_bytes = sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".jsonl"
    )
    sample_load = measure_load(
        take_sample(real_encoder, read([str(hard_sample.CALLS)]), seconds=600),
        "6/1",
        real_encoder.info.dimension,
    )
    assert sample_load.embedded_bytes / disk_bytes == pytest.approx(1, abs=0.1)


def test_the_plan_of_a_million_documents_is_the_sample_times_as_much(plan_sample: Sample) -> None:
    estimate = plan(plan_sample, "6/1", DIMENSION, 88_000_000)
    assert estimate.sample.documents == 88
    assert estimate.load.tokens == 1_000_000 * plan_sample.tokens
    spans = sum(len(window_bounds(codes.counts, "6/1")) for codes in plan_sample.codes)
    assert estimate.load.spans == 1_000_000 * spans
    assert estimate.hours.encoder == pytest.approx(1e6 * plan_sample.seconds / 3600)
    assert estimate.hours.embedded == pytest.approx(1.43 * estimate.hours.encoder)
    # 3,804 vectors a second
    assert estimate.hours.server == pytest.approx(1e6 * spans / 3804 / 3600, rel=1e-3)
    # The codes times 3.01, and a byte for each number: 50 GiB of it a shard.
    code_bytes = sum(len(word_codes.to_bytes(codes)) for codes in plan_sample.codes)
    server = 1e6 * (3.01 * code_bytes + 8 * spans)
    assert estimate.load.server_bytes == pytest.approx(server, rel=1e-6)
    assert estimate.shards == -(-estimate.load.server_bytes // (50 * 2**30)) > 1


@pytest.mark.usefixtures("_remembered_batches")
def test_the_command_plans_for_the_sample_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "SECONDS", 600)  # a busy machine does not end the sample early
    output = invoke_cli("plan", "--documents", "1000", "--json").json
    assert set(output) == {
        "policy",
        "dimension",
        "tokens_a_second",
        "skipped",
        "sample",
        "load",
        "hours",
        "shards",
    }
    assert (output["policy"], output["load"]["documents"], output["sample"]["documents"]) == (
        "5/1",
        1000,
        100,
    )
    assert not [path for path in Path().rglob("*") if path.is_file()]


def test_a_plan_is_made_of_tables_too() -> None:
    Path("calls.csv").write_text("call,body\n1,I want my money back\n2,where is my parcel\n")
    output = invoke_cli("plan", "calls.csv", "--columns", "id=call,text=body", "--json").json
    assert (output["sample"]["documents"], output["skipped"], output["sample"]["words"]) == (
        2,
        0,
        9,
    )


def test_an_index_gives_its_policy_its_vectors_and_its_number_of_documents() -> None:
    Path("calls.jsonl").write_text(
        '{"id": "a", "text": "I want my money back"}\n{"id": "b", "text": "where is my parcel"}\n'
    )
    with connect("embedded:store", dimension=64) as client:
        client.ingest_lines(read(["calls.jsonl"]), index="calls", policy="3/1")
    document_line = '{"id": "c", "text": "one two three four five six"}\n'
    output = invoke_cli(
        "plan", "-", "--index", "calls", "--url", "embedded:store", "--json", stdin=document_line
    ).json
    assert (output["policy"], output["dimension"], output["load"]["documents"]) == ("3/1", 64, 2)
    assert (
        output["load"]["spans"] == 2 * 2
    )  # six words are two windows of three, in each of two documents


def test_people_are_told_the_same() -> None:
    output = invoke_cli(
        "plan", "-", "--documents", "2000", stdin='{"id": "a", "text": "I want my money back"}\n{\n'
    ).stdout
    assert "sample: 1 documents, 5 tokens" in output
    assert "1 lines were left out: they are not valid documents" in output
    assert "2,000 documents" in output
    assert (
        "2,000 vectors of 192 dimensions, policy 5/1" in output
    )  # five words are one window, in each of 2,000 documents
    assert "1 primary shards of 50 GiB" in output
