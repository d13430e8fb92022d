"""Retries of refused documents, from the rejects file, with their first source and line.

No document is lost on the way.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.ingest import rejects as rejected
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.types import SourceLine
from tests.helpers.cli import CommandResult
from tests.helpers.ingest_process import POISON, start_ingest

pytestmark = pytest.mark.faults

URL = "embedded:store"
REJECTS = Path("store/calls.rejected.jsonl")
BREAKS = {"BREAKS": "yes"}

GOOD = {"id": "good", "text": "I want my money back."}
BAD = b'{"id": "bad", "text": "\xff"}'
POISONED = [{"id": f"p{number}", "text": f"{POISON} {number}"} for number in range(3)]


def ingest(*arguments: str, env: dict[str, str] | None = None) -> CommandResult:
    process = start_ingest("--url", URL, *arguments, env=env)
    stdout, stderr = process.communicate(timeout=120)
    assert "Traceback" not in stderr, stderr
    return CommandResult(process.returncode, stdout, stderr)


def read_reasons(path: Path = REJECTS) -> dict[tuple[str, int], str]:
    return {
        (entry["source"], entry["line"]): entry["reason"]
        for entry in map(json.loads, path.read_text().splitlines())
    }


def count_documents() -> int:
    with closing(open_backend(URL)) as backend:
        return backend.describe_index("calls").documents


@pytest.fixture
def _rejects_file() -> None:
    """Refuse line 2, which is not UTF-8, and lines 3 to 5, at which the encoder fails."""
    lines = [
        json.dumps(GOOD).encode(),
        BAD,
        *(json.dumps(document).encode() for document in POISONED),
    ]
    Path("calls.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    result = ingest("calls.jsonl", env=BREAKS)
    assert (result.status, result.json["documents"], result.json["failed"]) == (1, 1, 4)
    assert read_reasons() == {
        ("calls.jsonl", 2): "not UTF-8",
        **{
            ("calls.jsonl", number): "the encoder fails at this text: ValueError"
            for number in (3, 4, 5)
        },
    }


@pytest.mark.usefixtures("_rejects_file")
def test_what_is_good_by_now_is_indexed_and_the_rest_stays_with_its_first_line() -> None:
    result = ingest("--retry", str(REJECTS))
    assert (
        result.status,
        result.json["read"],
        result.json["documents"],
        result.json["failed"],
        result.json["rejected"],
    ) == (1, 4, 3, 1, str(REJECTS))
    assert read_reasons() == {("calls.jsonl", 2): "not UTF-8"}
    assert count_documents() == 4
    second_result = ingest("--retry", str(REJECTS))
    assert (second_result.status, second_result.json["failed"]) == (1, 1)
    assert json.loads(REJECTS.read_text())["document"].encode("utf-8", "surrogateescape") == BAD


def test_a_retry_reads_refused_documents_by_the_columns_that_the_refusal_asked_for() -> None:
    Path("calls.jsonl").write_text(json.dumps({"id": "call", "body": "I want my money back."}))
    refused = ingest("calls.jsonl")
    assert (refused.status, refused.json["failed"]) == (1, 1)
    result = ingest("--retry", str(REJECTS), "--columns", "text=body")
    assert (result.status, result.json["documents"]) == (0, 1), result.stderr
    assert not REJECTS.exists()


@pytest.mark.usefixtures("_rejects_file")
def test_a_file_of_which_all_is_indexed_is_gone() -> None:
    REJECTS.write_text(
        "".join(line + "\n" for line in REJECTS.read_text().splitlines() if "not UTF-8" not in line)
    )
    result = ingest("--retry", str(REJECTS))
    assert (result.status, result.json["documents"], result.json["rejected"]) == (0, 3, None)
    assert not REJECTS.exists()


@pytest.mark.usefixtures("_rejects_file")
def test_another_file_for_what_is_refused_again_leaves_the_old_one_alone() -> None:
    before = REJECTS.read_bytes()
    result = ingest("--retry", str(REJECTS), "--rejects", "other.jsonl")
    assert (result.status, result.json["rejected"]) == (1, "other.jsonl")
    assert REJECTS.read_bytes() == before
    assert set(read_reasons(Path("other.jsonl"))) == {("calls.jsonl", 2)}


@pytest.mark.usefixtures("_rejects_file")
def test_a_retry_that_is_killed_or_stopped_or_fails_leaves_the_old_file_as_it_was() -> None:
    before = REJECTS.read_bytes()

    def end_retry(method: str) -> None:
        process = start_ingest("--url", URL, "--retry", str(REJECTS), env={"SLOW": "2"})
        time.sleep(1.0)
        getattr(process, method)()
        process.communicate()
        assert REJECTS.read_bytes() == before

    end_retry("kill")
    failed = ingest("--retry", str(REJECTS), env={"ENCODER_FAILS_AFTER": "0"})
    assert failed.error == (
        "the encoder tiny fails at every text: RuntimeError: the device is gone. "
        "What was committed is safe: check the device, and run the same command again"
    )
    assert REJECTS.read_bytes() == before
    end_retry("terminate")  # what was read by then is indexed
    result = ingest("--retry", str(REJECTS))
    assert result.json["documents"] + result.json["skipped"] == 3
    assert set(read_reasons()) == {("calls.jsonl", 2)}


def reread_entries(*raw_entries: dict[str, Any] | bytes) -> list[SourceLine]:
    REJECTS.parent.mkdir(exist_ok=True)
    REJECTS.write_bytes(
        b"".join(
            (entry if isinstance(entry, bytes) else json.dumps(entry).encode()) + b"\n"
            for entry in raw_entries
        )
    )
    rejected.check_retried(REJECTS)
    return list(rejected.read_retried(REJECTS))


def test_what_was_no_whole_line_keeps_its_reason() -> None:
    REJECTS.parent.mkdir()
    rejects = Rejects(REJECTS)
    rejects.add(
        SourceLine("a.jsonl", 7, b"", "the source cannot be read on after line 6: cut off"),
        "the source cannot be read on after line 6: cut off",
    )
    rejects.add(
        SourceLine("a.jsonl", 8, b'{"id"', "the line is over 9 bytes long"),
        "the line is over 9 bytes long",
    )
    rejects.add(SourceLine("a.jsonl", 9, b'{"id"\n'), "not JSON")
    rejects.close()
    lines = list(rejected.read_retried(REJECTS))
    assert [(line.number, line.fault) for line in lines] == [
        (7, "the source cannot be read on after line 6: cut off"),
        (8, "the line is over 9 bytes long"),
        (9, None),
    ]


def test_an_entry_that_was_cut_off_is_kept_as_it_is() -> None:
    entry = {"source": "a.jsonl", "line": 1, "reason": "not JSON", "document": "{"}
    lines = reread_entries(entry, b'{"source": "a.jsonl", "li')
    assert lines[1] == SourceLine(
        str(REJECTS),
        2,
        b'{"source": "a.jsonl", "li\n',
        "not an entry of a rejects file: its line may have been cut off",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--retry", "calls.jsonl"],
            "calls.jsonl is not a file of refused documents "
            "(their lines have source, line, reason and document)",
        ),
        (["--retry", "none.jsonl"], "there is no file none.jsonl of refused documents"),
        (["--retry", "calls.jsonl", "calls.jsonl"], "both --retry and sources (calls.jsonl)"),
        (
            ["--retry", "calls.jsonl", "--checkpoint", "done.json"],
            "--checkpoint is for files, but --retry was given: leave --checkpoint out",
        ),
        (
            ["--checkpoint", "calls.jsonl", "calls.jsonl"],
            "calls.jsonl is not a checkpoint: name another file",
        ),
    ],
)
def test_what_cannot_be_tried_again_is_one_error(arguments: list[str], message: str) -> None:
    Path("calls.jsonl").write_text(json.dumps(GOOD) + "\n")
    assert message in ingest(*arguments).error
    assert json.loads(Path("calls.jsonl").read_text()) == GOOD
