"""Checkpoints: a run after a kill begins behind the lines that are done, and skips no other."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.ingest import checkpoint as checkpoints
from hybrid_search.ingest import pipeline, prepare
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from tests.helpers.changed_index import list_records
from tests.helpers.ingest_process import start_ingest
from tests.helpers.tiny_encoder import TinyEncoder, make_spec

pytestmark = pytest.mark.faults

FILE, REJECTS, SOURCE = Path("done.json"), Path("rejected.jsonl"), Path("calls.jsonl")


class KilledError(Exception):
    """Raised where a process would have been killed."""


@pytest.fixture(autouse=True)
def _frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the checkpoint after each block, and make blocks of a few documents."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", 8)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 8)


@pytest.fixture
def backend() -> Iterator[Backend]:
    with closing(open_backend("embedded:store")) as embedded_backend:
        yield embedded_backend


def make_document(number: int, version: str = "first") -> dict[str, Any]:
    return {"id": f"d{number % 150}", "text": f"{version} word{number}"}


def write_lines(lines: list[Any], path: Path = SOURCE) -> None:
    path.write_bytes(
        b"".join(
            (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n"
            for line in lines
        )
    )


LINES: list[Any] = [
    b"not JSON" if number % 20 == 7 else make_document(number) for number in range(200)
]
"""Lines 8, 28, 48, ... are refused; documents d0 to d49 come a second time after line 150."""
BAD = [number for number in range(1, 201) if number % 20 == 8]


def run_ingest(
    backend: Backend,
    killed_at: int | None = None,
    place: str = "here",
    names: tuple[str, ...] = ("calls.jsonl",),
    where: Mapping[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Summary:
    """Ingest, and be killed after `killed_at` blocks."""
    checkpoint = checkpoint or Checkpoint(FILE, place, names)
    blocks = -1  # it reports once before the first

    def report(_: Summary) -> None:
        nonlocal blocks
        blocks += 1
        if blocks == killed_at:
            raise KilledError

    summary = pipeline.ingest(
        files.read(names),
        backend,
        TinyEncoder(),
        IngestOptions(
            "calls",
            REJECTS,
            report=report,
            where=where,
            checkpoint=checkpoint,
        ),
    )
    checkpoint.finish()
    return summary


def run_until_killed(backend: Backend, killed_at: int = 10, **options: Any) -> None:
    with pytest.raises(KilledError):
        run_ingest(backend, killed_at, **options)


def read_texts() -> dict[str, str]:
    """Return the text of each document, by its id."""
    return {found.id: found.text for found in list_records()}


def read_rejected_lines() -> list[int]:
    return [json.loads(line)["line"] for line in REJECTS.read_text().splitlines()]


EXPECTED = {document["id"]: document["text"] for document in LINES if isinstance(document, dict)}


def test_the_same_command_begins_behind_what_is_done(backend: Backend) -> None:
    write_lines(LINES)
    run_until_killed(backend, 5)
    noted = json.loads(FILE.read_text())["sources"]["calls.jsonl"]["lines"]
    run_until_killed(backend, 5)  # and killed again, behind 40 documents more
    further = json.loads(FILE.read_text())["sources"]["calls.jsonl"]["lines"]
    assert 40 <= noted <= further - 40
    summary = run_ingest(backend)
    assert (summary.resumed, summary.read) == (further, 200 - further)
    assert read_texts() == EXPECTED
    assert sorted(read_rejected_lines()) == BAD
    assert summary.failed == len([number for number in BAD if number > further])
    assert summary.rejected == str(REJECTS)
    assert not FILE.exists()


def test_a_run_that_fails_has_ended_its_threads(backend: Backend) -> None:
    """A thread that went on reading would use files that the failed run has closed."""
    write_lines(LINES * 5)
    threads = threading.enumerate()
    with pytest.raises(KilledError) as failure:
        run_ingest(backend, killed_at=2)
    assert failure.tb  # its frames still have the stages, as in a debugger
    assert set(threading.enumerate()) <= set(threads)


def test_a_second_version_of_a_document_is_not_missed(backend: Backend) -> None:
    """The kill is between the two versions of d0, ..., d49, after the second of some."""
    write_lines(LINES)
    for _ in range(2):
        run_until_killed(backend, 12)
    summary = run_ingest(backend)
    assert summary.resumed > 150
    assert read_texts() == EXPECTED


@pytest.mark.parametrize("url", ["memory:", "embedded:store"])
def test_a_document_of_which_a_part_was_written_is_not_done(url: str) -> None:
    """The checkpoint counts whole documents only.

    Calls of one to five passages in blocks of eight, killed at any block.
    """
    documents = [
        {
            "id": f"d{number}",
            "turns": [{"text": " ".join([f"word{number}"] * 70)}] * (1 + number % 5),
        }
        for number in range(40)
    ]
    write_lines(documents)
    resumed = []
    for killed_at in range(1, 15):  # 120 passages are 15 blocks
        with closing(open_backend(url)) as backend:
            run_until_killed(backend, killed_at)
            resumed.append(run_ingest(backend).resumed)
            info = backend.describe_index("calls")
            assert (info.documents, info.passages) == (40, 120)
            backend.drop_index("calls")
    assert resumed == sorted(resumed)
    assert resumed[-1] > 30


def delete_all_documents(backend: Backend) -> None:
    with backend.writer("calls", make_spec()) as writer:
        writer.delete([f"d{number}" for number in range(150)])


CHANGES: dict[str, Callable[[Backend], Any]] = {
    "another first line": lambda _: write_lines([make_document(0, "other"), *LINES[1:]]),
    "a longer file": lambda _: write_lines([*LINES, make_document(149, "other")]),
    "an equal file, written later": lambda _: os.utime(SOURCE, (1, 1)),
    "a rejects file that is gone": lambda _: REJECTS.unlink(),
    "a rejects file of another run": lambda _: REJECTS.write_text(
        '{"source": "calls.jsonl", "line": 1, "reason": "old", "document": "{"}\n'
    ),
    "an index that was dropped": lambda backend: backend.drop_index("calls"),
    "an index without what was last": delete_all_documents,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_read_from_the_beginning(backend: Backend, change: str) -> None:
    write_lines(LINES)
    run_until_killed(backend)
    CHANGES[change](backend)
    summary = run_ingest(backend)
    lines = [line for line in SOURCE.read_bytes().splitlines() if line != b"not JSON"]
    assert (summary.resumed, summary.read) == (0, len(lines) + len(BAD))
    assert read_texts() == {document["id"]: document["text"] for document in map(json.loads, lines)}
    assert sorted(read_rejected_lines()) == BAD


def test_what_an_older_run_refused_is_not_taken_for_a_refusal_of_this_one(backend: Backend) -> None:
    REJECTS.write_text('{"source": "calls.jsonl", "line": 1, "reason": "old", "document": "{"}\n')
    write_lines([document for document in LINES if isinstance(document, dict)])
    run_until_killed(backend)
    summary = run_ingest(backend)
    assert summary.resumed > 0
    assert (summary.failed, summary.rejected) == (0, None)


def test_a_note_of_another_place_does_not_hold(backend: Backend) -> None:
    write_lines(LINES)
    run_until_killed(backend)
    assert run_ingest(backend, place="there").resumed == 0


def test_of_several_files_those_that_are_done_are_passed_over(backend: Backend) -> None:
    names = ("calls.jsonl", "more.jsonl")
    write_lines(LINES)
    write_lines([make_document(number, "more") for number in range(60, 160)], Path("more.jsonl"))
    run_until_killed(backend, 27, names=names)  # 190 documents are 23 blocks of 8 and a rest
    summary = run_ingest(backend, names=names)
    assert 200 < summary.resumed == 300 - summary.read
    assert read_texts() == {
        **EXPECTED,
        **{
            document["id"]: document["text"]
            for document in (make_document(number, "more") for number in range(60, 160))
        },
    }
    assert sorted(read_rejected_lines()) == BAD


def test_a_file_that_is_replaced_between_the_note_and_the_reading_is_another(
    backend: Backend,
) -> None:
    """Otherwise its lines would be taken for those of the first file."""
    write_lines(LINES)
    checkpoint = Checkpoint(FILE, "here", ["calls.jsonl"])
    write_lines([make_document(number, "other") for number in range(200)])

    def read_until_killed() -> Iterator[SourceLine]:
        for line in files.read(["calls.jsonl"]):
            if line.number == 120:
                raise KilledError
            yield line

    with pytest.raises(KilledError):
        pipeline.ingest(
            read_until_killed(),
            backend,
            TinyEncoder(),
            IngestOptions("calls", REJECTS, checkpoint=checkpoint),
        )
    assert FILE.exists()
    assert run_ingest(backend).resumed == 0


def test_standard_input_is_never_passed_over(backend: Backend) -> None:
    checkpoint = Checkpoint(FILE, "here", ["-"])
    lines = [
        SourceLine("-", number, json.dumps(make_document(number)).encode())
        for number in range(1, 100)
    ]
    for _ in range(2):
        pipeline.ingest(
            lines, backend, TinyEncoder(), IngestOptions("calls", REJECTS, checkpoint=checkpoint)
        )
    assert checkpoint.resumed_lines == 0
    assert not FILE.exists()


def test_a_command_that_is_killed_goes_on_behind_its_checkpoint() -> None:
    write_lines([make_document(number) | {"id": str(number)} for number in range(4000)])
    command = ("--url", "embedded:store", "--checkpoint", str(FILE), str(SOURCE))
    process = start_ingest(*command, env={"SLOW": "0.1"})
    end = time.monotonic() + 60
    while not FILE.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.kill()
    process.communicate()
    done_lines = json.loads(FILE.read_text())["sources"][str(SOURCE)]["lines"]
    process = start_ingest(*command)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    summary = json.loads(stdout.splitlines()[-1])
    assert (summary["resumed"], summary["read"]) == (done_lines, 4000 - done_lines)
    assert summary["documents"] + summary["skipped"] == summary["read"]
    assert not FILE.exists()
    with closing(open_backend("embedded:store")) as backend:
        assert backend.describe_index("calls").documents == 4000


def test_a_note_of_another_choice_of_documents_does_not_hold(backend: Backend) -> None:
    """A line that ``--where`` does not select is done for that choice of documents alone."""
    write_lines(
        [
            {"id": f"d{number}", "text": "some words", "kind": "call" if number % 2 else "mail"}
            for number in range(200)
        ]
    )

    def ingest_kind(kind: str, killed_at: int | None = None) -> Summary:
        where = {"kind": [kind]}
        checkpoint = Checkpoint(FILE, f"here {where}", ["calls.jsonl"])
        return run_ingest(backend, killed_at, where=where, checkpoint=checkpoint)

    with pytest.raises(KilledError):
        ingest_kind("call", 5)
    assert (ingest_kind("mail").documents, len(read_texts())) == (
        100,
        100 + 8 * 5,
    )  # a block has 8 passages
    assert ingest_kind("call").documents + 8 * 5 == 100
