"""What was refused is tried again: from the rejects file itself, under its first source and line, and never lost on the way."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.ingest import again
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.sources import Line
from tests.command import POISON, ingesting
from tests.program import Ran

URL = "embedded:store"
REJECTS = Path("calls.rejected.jsonl")
BREAKS = {"BREAKS": "yes"}

GOOD = {"id": "good", "text": "I want my money back."}
BAD = b'{"id": "bad", "text": "\xff"}'
POISONED = [{"id": f"p{number}", "text": f"{POISON} {number}"} for number in range(3)]


def ingest(*arguments: str, env: dict[str, str] | None = None) -> Ran:
    process = ingesting("--url", URL, *arguments, env=env)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err, err
    return Ran(process.returncode, out, err)


def refused(path: Path = REJECTS) -> dict[tuple[str, int], str]:
    return {(each["source"], each["line"]): each["reason"] for each in map(json.loads, path.read_text().splitlines())}


def held() -> int:
    with closing(open_backend(URL)) as backend:
        return backend.describe("calls").documents


@pytest.fixture
def _refused() -> None:
    """A run that refused line 2, which is no UTF-8, and lines 3 to 5, at which the encoder failed."""
    lines = [json.dumps(GOOD).encode(), BAD, *(json.dumps(each).encode() for each in POISONED)]
    Path("calls.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))
    ran = ingest("calls.jsonl", env=BREAKS)
    assert (ran.status, ran.json["documents"], ran.json["failed"]) == (1, 1, 4)
    assert refused() == {
        ("calls.jsonl", 2): "not UTF-8: byte 0xff at 23",
        **{("calls.jsonl", number): "the encoder fails at this text: ValueError: an odd shape" for number in (3, 4, 5)},
    }


@pytest.mark.usefixtures("_refused")
def test_what_is_good_by_now_is_indexed_and_the_rest_stays_with_its_first_line() -> None:
    ran = ingest("--retry", str(REJECTS))
    assert (ran.status, ran.json["read"], ran.json["documents"], ran.json["failed"], ran.json["rejected"]) == (1, 4, 3, 1, str(REJECTS))
    assert refused() == {("calls.jsonl", 2): "not UTF-8: byte 0xff at 23"}
    assert held() == 4
    again_ = ingest("--retry", str(REJECTS))
    assert (again_.status, again_.json["failed"]) == (1, 1)
    assert json.loads(REJECTS.read_text())["document"].encode("utf-8", "surrogateescape") == BAD


@pytest.mark.usefixtures("_refused")
def test_a_file_of_which_all_is_indexed_is_gone() -> None:
    REJECTS.write_text("".join(each + "\n" for each in REJECTS.read_text().splitlines() if "not UTF-8" not in each))
    ran = ingest("--retry", str(REJECTS))
    assert (ran.status, ran.json["documents"], ran.json["rejected"]) == (0, 3, None)
    assert not REJECTS.exists()


@pytest.mark.usefixtures("_refused")
def test_another_file_for_what_is_refused_again_leaves_the_old_one_alone() -> None:
    before = REJECTS.read_bytes()
    ran = ingest("--retry", str(REJECTS), "--rejects", "other.jsonl")
    assert (ran.status, ran.json["rejected"]) == (1, "other.jsonl")
    assert REJECTS.read_bytes() == before
    assert set(refused(Path("other.jsonl"))) == {("calls.jsonl", 2)}


@pytest.mark.usefixtures("_refused")
def test_a_retry_that_is_killed_or_stopped_or_fails_leaves_the_old_file_as_it_was() -> None:
    before = REJECTS.read_bytes()

    def ended(way: str) -> None:
        process = ingesting("--url", URL, "--retry", str(REJECTS), env={"SLOW": "2"})
        time.sleep(1.0)
        getattr(process, way)()
        process.communicate()
        assert REJECTS.read_bytes() == before

    ended("kill")
    failed = ingest("--retry", str(REJECTS), env={"ENCODER_FAILS_AFTER": "0"})
    assert failed.error == (
        "the encoder tiny fails at every text: RuntimeError: the device is gone. What was committed is safe: see to the device, and run the same "
        "command again"
    )
    assert REJECTS.read_bytes() == before
    ended("terminate")  # what was read by then is indexed
    ran = ingest("--retry", str(REJECTS))
    assert ran.json["documents"] + ran.json["skipped"] == 3
    assert set(refused()) == {("calls.jsonl", 2)}


def entries(*given: dict[str, Any] | bytes) -> list[Line]:
    REJECTS.write_bytes(b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in given))
    again.check(REJECTS)
    return list(again.read(REJECTS))


def test_what_was_no_whole_line_keeps_its_reason() -> None:
    rejects = Rejects(REJECTS)
    rejects.add(Line("a.jsonl", 7, b"", "the source cannot be read on after line 6: cut off"), "the source cannot be read on after line 6: cut off")
    rejects.add(Line("a.jsonl", 8, b'{"id"', "the line is over 9 bytes long"), "the line is over 9 bytes long")
    rejects.add(Line("a.jsonl", 9, b'{"id"\n'), "not JSON")
    rejects.close()
    found = list(again.read(REJECTS))
    assert [(each.number, each.fault) for each in found] == [
        (7, "the source cannot be read on after line 6: cut off"),
        (8, "the line is over 9 bytes long"),
        (9, None),
    ]


def test_an_entry_that_was_cut_off_is_kept_as_it_is() -> None:
    whole = {"source": "a.jsonl", "line": 1, "reason": "not JSON", "document": "{"}
    found = entries(whole, b'{"source": "a.jsonl", "li')
    assert found[1] == Line(str(REJECTS), 2, b'{"source": "a.jsonl", "li\n', "not an entry of a rejects file: its line may have been cut off")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retry", "calls.jsonl"], "calls.jsonl is no file of refused documents (its lines have source, line, reason and document)"),
        (["--retry", "none.jsonl"], "there is no file none.jsonl of refused documents"),
        (["--retry", "calls.jsonl", "calls.jsonl"], "both --retry and sources (calls.jsonl)"),
        (["--retry", "calls.jsonl", "--checkpoint", "done.json"], "--checkpoint is for files, and --retry was given: leave it out"),
        (["--checkpoint", "calls.jsonl", "calls.jsonl"], "calls.jsonl is no checkpoint: name another file"),
    ],
)
def test_what_cannot_be_tried_again_is_one_error(arguments: list[str], message: str) -> None:
    Path("calls.jsonl").write_text(json.dumps(GOOD) + "\n")
    assert message in ingest(*arguments).error
    assert json.loads(Path("calls.jsonl").read_text()) == GOOD
