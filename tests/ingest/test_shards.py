"""Shards: each document and each bad line belongs to exactly one of several processes.

Together they give the index that one process gives alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.errors import UsageError
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from tests.helpers.cli import invoke_cli
from tests.helpers.ingest_process import start_ingest
from tests.helpers.server_index import RawIndex, assert_index_holds, make_calls
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder

GOOD = st.builds(
    lambda number, word: json.dumps({"id": f"call {number}", "text": f"the {word}"}).encode(),
    st.integers(0, 20),
    st.sampled_from("abc"),
)
BAD = st.sampled_from(
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"id": 1, "text": "a"}',
        b'{"text": "a"}',
        b'{"id": "empty", "text": ""}',
        b'{"id": "\\ud800", "text": "a"}',
    ]
)
LINES = st.lists(st.one_of(GOOD, BAD, st.just(b"\n")), max_size=30)


def ingest_shard(
    backend: MemoryBackend, lines: Sequence[SourceLine], shard: Shard, folder: Path
) -> tuple[Summary, list[int]]:
    """Return the summary of a run of one shard, and the numbers of the refused lines."""
    rejects = folder / shard.add_suffix("calls")
    rejects.unlink(missing_ok=True)
    summary = ingest(lines, backend, TinyEncoder(), IngestOptions("calls", rejects, shard=shard))
    refused = (
        [json.loads(line)["line"] for line in rejects.read_text().splitlines()]
        if rejects.exists()
        else []
    )
    return summary, refused


def stored_passages(backend: MemoryBackend) -> dict[str, list[tuple[str, str, bytes]]]:
    """Return every passage of the index: its document's source hash, its text and its codes."""
    if "calls" not in backend.list_indexes():  # no document was written
        return {}
    passages = backend._indexes["calls"].passages()
    passages_by_document: dict[str, list[tuple[str, str, bytes]]] = {}
    for (name, _), passage in passages.items():
        passages_by_document.setdefault(name, []).append(
            (
                passage.entry.source_hash,
                passage.entry.text,
                passage.entry.tokens.residuals.tobytes(),
            )
        )
    return passages_by_document


@settings(deadline=None, max_examples=60)
@given(LINES, st.integers(1, 5))
def test_all_shards_together_give_what_one_process_gives(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], count: int
) -> None:
    folder, lines = tmp_path_factory.getbasetemp(), make_lines(data)
    single, sharded = MemoryBackend(), MemoryBackend()
    alone, refused = ingest_shard(single, lines, ALL_DOCUMENTS, folder)
    shares = [ingest_shard(sharded, lines, Shard(number, count), folder) for number in range(count)]
    assert stored_passages(sharded) == stored_passages(single)
    assert sorted(number for _, numbers in shares for number in numbers) == refused
    for name in ("read", "documents", "passages", "spans", "tokens", "failed", "duplicates"):
        assert sum(getattr(summary, name) for summary, _ in shares) == getattr(alone, name), name
    assert alone.others == 0
    assert [summary.read + summary.others for summary, _ in shares] == [alone.read] * count


def test_shards_are_of_like_size() -> None:
    lines = make_lines([json.dumps({"id": f"call-{number}"}).encode() for number in range(3000)])
    shares = [sum(Shard(number, 3).owns(line) for line in lines) for number in range(3)]
    assert sum(shares) == 3000
    assert all(abs(share - 1000) < 5 * 26 for share in shares)  # five times sqrt(3000 * 1/3 * 2/3)


def test_a_shard_does_not_change_from_one_release_to_the_next() -> None:
    # printf 'call-1' | sha256sum begins with 5d7963c4f471e142, taken modulo 7
    line = SourceLine("calls.jsonl", 1, b'{"id": "call-1"}')
    assert [number for number in range(7) if Shard(number, 7).owns(line)] == [
        0x5D7963C4F471E142 % 7
    ]


@pytest.mark.parametrize("fault", [None, "the line is over 67108864 bytes long"])
def test_a_line_without_an_id_belongs_to_the_shard_of_its_number(fault: str | None) -> None:
    owners = [
        [number for number in range(3) if Shard(number, 3).owns(SourceLine("a", line, b"{", fault))]
        for line in range(1, 7)
    ]
    assert owners == [[1], [2], [0], [1], [2], [0]]


@pytest.mark.parametrize(
    "text", ["", "1", "3/3", "7/3", "/3", "1/", "1/0", "-1/3", "1/3/5", "a/b", "1.0/3", "²/3"]
)
def test_what_is_no_shard_is_refused_with_the_form(text: str) -> None:
    message = (
        r"is not of the form I/N, with I under N: 0/3, 1/3 and 2/3 are all the shards of three"
    )
    with pytest.raises(UsageError, match=message):
        Shard.parse(text)


def make_documents(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"call-{number}", "text": f"I want my money back, {number} times."}
        for number in range(count)
    ]


def test_three_runs_of_the_command_fill_one_index_and_each_says_what_was_others(
    tmp_path: Path,
) -> None:
    lines = [json.dumps(document) for document in make_documents(30)]
    Path("calls.jsonl").write_text("\n".join([*lines, "{"]) + "\n")
    results = [
        invoke_cli("ingest", "calls.jsonl", "--url", "embedded:store", "--shard", f"{number}/3")
        for number in range(3)
    ]
    assert sorted(result.status for result in results) == [0, 0, 1]
    assert sum(result.json["documents"] for result in results) == 30
    assert [result.json["read"] + result.json["others"] for result in results] == [31, 31, 31]
    assert [path.name for path in Path("store").glob("*.rejected.jsonl")] == [
        "calls.1-of-3.rejected.jsonl"
    ]  # line 31, and 31 is 1 modulo 3
    again = invoke_cli("ingest", "calls.jsonl", "--url", "embedded:store")
    assert (again.json["documents"], again.json["skipped"]) == (0, 30)


def test_shards_that_begin_at_once_make_one_index_and_fill_it_together(place: RawIndex) -> None:
    """Each process finds no index and makes one, and brings a metadata field of its own."""
    good = [
        {**document, f"of_{number % 7}": number}
        for number, document in enumerate(make_calls("first", lambda number: number % 4 + 1, 60))
    ]
    Path("calls.jsonl").write_text("".join(json.dumps(document) + "\n" for document in good))
    arguments = ("calls.jsonl", "--url", place.url, "--index", place.index)
    processes = [start_ingest(*arguments, "--shard", f"{number}/3") for number in range(3)]
    outcomes = [(process, *process.communicate(timeout=120)) for process in processes]
    assert [
        (process.returncode, err if process.returncode else "") for process, _, err in outcomes
    ] == [(0, "")] * 3
    summaries = [json.loads(stdout.splitlines()[-1]) for _, stdout, _ in outcomes]
    assert sum(summary["documents"] for summary in summaries) == 60
    assert all(summary["documents"] for summary in summaries)
    assert len(place.list_names()) == 1
    assert_index_holds(place, good)
