"""A run that was killed begins behind the lines that are done, and never passes over one that is not."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.cli import lasting
from hybrid_search.ingest import checkpoint as checkpoints
from hybrid_search.ingest import prepare, sources, worker
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from tests.command import ingesting
from tests.tiny import TinyEncoder, spec

FILE, REJECTS, SOURCE = Path("done.json"), Path("rejected.jsonl"), Path("calls.jsonl")


class KilledError(Exception):
    """Where a process would have been killed."""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note behind each block, and blocks of a few documents."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 8)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 8)


@pytest.fixture
def backend() -> Iterator[Backend]:
    with closing(open_backend("embedded:store")) as opened:
        yield opened


def good(number: int, version: str = "first") -> dict[str, Any]:
    return {"id": f"d{number % 150}", "text": f"{version} word{number}"}


def written(lines: list[Any], path: Path = SOURCE) -> None:
    path.write_bytes(b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines))


LINES: list[Any] = [b"not JSON" if number % 20 == 7 else good(number) for number in range(200)]
"""Of ten lines number 8, 28, 48, ... are refused; documents d0 to d49 come a second time behind line 150."""
BAD = [number for number in range(1, 201) if number % 20 == 8]


def run(
    backend: Backend,
    killed_at: int | None = None,
    place: str = "here",
    names: tuple[str, ...] = ("calls.jsonl",),
    where: Mapping[str, Any] | None = None,
    kept: Checkpoint | None = None,
) -> Summary:
    """An ingest that is killed when so many blocks were written."""
    kept = kept or Checkpoint(FILE, place, names)
    blocks = -1  # it reports once before the first

    def report(_: Summary) -> None:
        nonlocal blocks
        blocks += 1
        if blocks == killed_at:
            raise KilledError

    summary = worker.ingest(sources.read(names), backend, TinyEncoder(), "calls", REJECTS, report=report, where=where, checkpoint=kept)
    kept.finish()
    return summary


def killed(backend: Backend, at: int = 10, **how: Any) -> None:
    with pytest.raises(KilledError):
        run(backend, at, **how)


def texts() -> dict[str, str]:
    """Of all documents, by their ids."""
    with closing(sqlite3.connect("store/calls.sqlite")) as connection:
        rows = "SELECT id, text FROM documents JOIN passages USING (document) JOIN texts ON texts.rowid = passage"
        return dict(connection.execute(rows))


def refused() -> list[int]:
    return [json.loads(line)["line"] for line in REJECTS.read_text().splitlines()]


EXPECTED = {each["id"]: each["text"] for each in LINES if isinstance(each, dict)}


def test_the_same_command_begins_behind_what_is_done(backend: Backend) -> None:
    written(LINES)
    killed(backend, 5)
    noted = json.loads(FILE.read_text())["sources"]["calls.jsonl"]["lines"]
    killed(backend, 5)  # and killed again, behind 40 documents more
    further = json.loads(FILE.read_text())["sources"]["calls.jsonl"]["lines"]
    assert 40 <= noted <= further - 40
    summary = run(backend)
    assert (summary.resumed, summary.read) == (further, 200 - further)
    assert texts() == EXPECTED
    assert sorted(refused()) == BAD
    assert summary.failed == len([number for number in BAD if number > further])
    assert summary.rejected == str(REJECTS)
    assert not FILE.exists()


def test_a_second_version_of_a_document_is_not_missed(backend: Backend) -> None:
    """Killed between the two versions of d0, ..., d49, and behind the second of some."""
    written(LINES)
    for _ in range(2):
        killed(backend, 12)
    summary = run(backend)
    assert summary.resumed > 150
    assert texts() == EXPECTED


@pytest.mark.parametrize("url", ["memory:", "embedded:store"])
def test_a_document_of_which_a_part_was_written_is_not_done(url: str) -> None:
    """Calls of one to five passages in blocks of eight, killed at any of them: the note speaks of whole documents only."""
    many = [{"id": f"d{number}", "turns": [{"text": " ".join([f"word{number}"] * 70)}] * (1 + number % 5)} for number in range(40)]
    written(many)
    resumed = []
    for killed_at in range(1, 15):  # 120 passages are 15 blocks
        with closing(open_backend(url)) as backend:
            killed(backend, killed_at)
            resumed.append(run(backend).resumed)
            held = backend.describe("calls")
            assert (held.documents, held.passages) == (40, 120)
            backend.drop("calls")
    assert resumed == sorted(resumed)
    assert resumed[-1] > 30


def emptied(backend: Backend) -> None:
    with backend.writer("calls", spec()) as writer:
        writer.delete([f"d{each}" for each in range(150)])


CHANGES: dict[str, Callable[[Backend], Any]] = {
    "another first line": lambda _: written([good(0, "other"), *LINES[1:]]),
    "a longer file": lambda _: written([*LINES, good(149, "other")]),
    "an equal file, written later": lambda _: os.utime(SOURCE, (1, 1)),
    "a rejects file that is gone": lambda _: REJECTS.unlink(),
    "a rejects file of another run": lambda _: REJECTS.write_text('{"source": "calls.jsonl", "line": 1, "reason": "old", "document": "{"}\n'),
    "an index that was dropped": lambda backend: backend.drop("calls"),
    "an index without what was last": emptied,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_read_from_the_beginning(backend: Backend, change: str) -> None:
    written(LINES)
    killed(backend)
    CHANGES[change](backend)
    summary = run(backend)
    lines = [each for each in SOURCE.read_bytes().splitlines() if each != b"not JSON"]
    assert (summary.resumed, summary.read) == (0, len(lines) + len(BAD))
    assert texts() == {each["id"]: each["text"] for each in map(json.loads, lines)}
    assert sorted(refused()) == BAD


def test_what_an_older_run_refused_is_not_taken_for_a_refusal_of_this_one(backend: Backend) -> None:
    REJECTS.write_text('{"source": "calls.jsonl", "line": 1, "reason": "old", "document": "{"}\n')
    written([each for each in LINES if isinstance(each, dict)])
    killed(backend)
    summary = run(backend)
    assert summary.resumed > 0
    assert (summary.failed, summary.rejected) == (0, None)


def test_a_note_of_another_place_does_not_hold(backend: Backend) -> None:
    written(LINES)
    killed(backend)
    assert run(backend, place="there").resumed == 0


def test_of_several_files_those_that_are_done_are_passed_over(backend: Backend) -> None:
    names = ("calls.jsonl", "more.jsonl")
    written(LINES)
    written([good(number, "more") for number in range(60, 160)], Path("more.jsonl"))
    killed(backend, 27, names=names)  # 190 documents are 23 blocks of 8 and a rest
    summary = run(backend, names=names)
    assert 200 < summary.resumed == 300 - summary.read
    assert texts() == {**EXPECTED, **{each["id"]: each["text"] for each in (good(number, "more") for number in range(60, 160))}}
    assert sorted(refused()) == BAD


def test_a_file_that_is_replaced_between_the_note_and_the_reading_is_another(backend: Backend) -> None:
    """Its lines would else be taken for those of the first."""
    written(LINES)
    kept = Checkpoint(FILE, "here", ["calls.jsonl"])
    written([good(number, "other") for number in range(200)])

    def lines() -> Iterator[Line]:
        for line in sources.read(["calls.jsonl"]):
            if line.number == 120:
                raise KilledError
            yield line

    with pytest.raises(KilledError):
        worker.ingest(lines(), backend, TinyEncoder(), "calls", REJECTS, checkpoint=kept)
    assert FILE.exists()
    assert run(backend).resumed == 0


def test_standard_input_is_never_passed_over(backend: Backend) -> None:
    kept = Checkpoint(FILE, "here", ["-"])
    lines = [Line("-", number, json.dumps(good(number)).encode()) for number in range(1, 100)]
    for _ in range(2):
        worker.ingest(lines, backend, TinyEncoder(), "calls", REJECTS, checkpoint=kept)
    assert kept.passed == 0
    assert not FILE.exists()


def test_a_command_that_is_killed_goes_on_behind_its_checkpoint() -> None:
    written([good(number) | {"id": str(number)} for number in range(4000)])
    command = ("--url", "embedded:store", "--checkpoint", str(FILE), str(SOURCE))
    process = ingesting(*command, env={"SLOW": "0.1"})
    end = time.monotonic() + 60
    while not FILE.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.kill()
    process.communicate()
    done = json.loads(FILE.read_text())["sources"][str(SOURCE)]["lines"]
    process = ingesting(*command)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    summary = json.loads(out.splitlines()[-1])
    assert (summary["resumed"], summary["read"]) == (done, 4000 - done)
    assert summary["documents"] + summary["skipped"] == summary["read"]
    assert not FILE.exists()
    with closing(open_backend("embedded:store")) as opened:
        assert opened.describe("calls").documents == 4000


def test_a_note_of_another_choice_of_documents_does_not_hold(backend: Backend) -> None:
    """What ``--where`` passed over is done for that choice alone."""
    written([{"id": f"d{number}", "text": "some words", "kind": "call" if number % 2 else "mail"} for number in range(200)])

    def chosen(kind: str, killed_at: int | None = None) -> Summary:
        where = {"kind": [kind]}
        kept = lasting.kept(FILE, ("calls.jsonl",), "here", where)
        assert kept
        return run(backend, killed_at, where=where, kept=kept)

    with pytest.raises(KilledError):
        chosen("call", 5)
    assert (chosen("mail").documents, len(texts())) == (100, 100 + 8 * 5)  # a block has 8 passages
    assert chosen("call").documents + 8 * 5 == 100
