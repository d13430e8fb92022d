"""A watched folder: what becomes of each file, in which order, and of one that a run was stopped or killed in."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest import follow as following
from hybrid_search.ingest import sources
from hybrid_search.ingest.follow import Inbox, follow
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.worker import ingest
from tests.program import invoke
from tests.tiny import TinyEncoder

INBOX = Path("inbox")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.01)
    INBOX.mkdir()


def put(name: str, *documents: dict[str, Any] | str, age: float = 0.0) -> Path:
    """Move a file into the folder, as one that was written `age` seconds ago."""
    hidden = INBOX / f".{name}.writing"
    hidden.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in documents))
    os.utime(hidden, (time.time() - age, time.time() - age))
    return hidden.rename(INBOX / name)


def call(id: str, text: str = "Where is my parcel?") -> dict[str, Any]:
    return {"id": id, "text": text}


def there(folder: Path = INBOX) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def run(files: int = 1, meanwhile: Callable[[Path], None] = lambda _: None, stopped: Callable[[], bool] = lambda: False) -> tuple[Summary, list[str]]:
    """Follow the folder with the tiny encoder until so many files are settled; what came of it, and the files in their order."""
    told: list[str] = []

    def until() -> bool:
        return len(told) == files or stopped()

    with connect("embedded:store") as client:

        def one(file: Path, rejects: Path) -> Summary:
            meanwhile(file)
            lines = itertools.takewhile(lambda _: not until(), sources.read([str(file)]))
            return ingest(lines, client.backend, TinyEncoder(), "calls", rejects)

        inbox = Inbox(INBOX)
        inbox.prepare()
        return follow(inbox, one, until, lambda now, _: told.append(now.relative_to(INBOX).as_posix())), told


def empty() -> bool:
    return not [name for name in there() if "/" not in name]


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def count() -> int:
    """Documents that are indexed."""
    with connect("embedded:store") as client:
        try:
            return client.describe("calls").documents
        except IndexMissingError:
            return 0


def test_files_go_to_done_the_oldest_first_and_are_counted_together() -> None:
    put("new.jsonl", call("a"))
    put("old.jsonl", call("b"), call("c"), age=60)
    put("older.csv", "id,text", "d,hello", age=600)
    summary, told = run(3)
    assert told == ["done/older.csv", "done/old.jsonl", "done/new.jsonl"]
    assert there() == ["done/new.jsonl", "done/old.jsonl", "done/older.csv"]
    assert (summary.read, summary.documents, summary.failed, summary.rejected) == (4, 4, 0, None)


def test_a_file_with_a_refused_document_goes_to_failed_with_the_reasons_beside_it() -> None:
    put("bad.jsonl", call("a"), "no JSON", call("b"))
    summary, _ = run()
    assert there() == ["failed/bad.jsonl", "failed/bad.jsonl.rejected.jsonl"]
    (entry,) = map(json.loads, (INBOX / "failed/bad.jsonl.rejected.jsonl").read_text().splitlines())
    assert (entry["source"], entry["line"], entry["document"]) == ("inbox/bad.jsonl", 2, "no JSON")
    assert (summary.documents, summary.failed, summary.rejected) == (2, 1, "inbox/failed/bad.jsonl.rejected.jsonl")


def test_a_file_that_cannot_be_read_goes_to_failed_and_the_next_is_ingested() -> None:
    put("cut.jsonl.gz", "this is not gzip", age=60)
    put("good.jsonl", call("a"))
    summary, told = run(2)
    assert told == ["failed/cut.jsonl.gz", "done/good.jsonl"]
    assert "Not a gzipped file" in (INBOX / "failed/cut.jsonl.gz.rejected.jsonl").read_text()
    assert summary.documents == 1


def test_files_that_are_still_being_written_and_folders_are_left_alone() -> None:
    for name in (".hidden.jsonl", "calls.jsonl.tmp", "calls.jsonl.part"):
        (INBOX / name).write_text(json.dumps(call("a")))
    (INBOX / "folder").mkdir()
    (INBOX / "folder" / "calls.jsonl").write_text(json.dumps(call("a")))
    summary, told = run(stopped=after(0.3))
    assert (told, summary.read) == ([], 0)
    assert there() == [".hidden.jsonl", "calls.jsonl.part", "calls.jsonl.tmp", "folder/calls.jsonl"]


def test_a_second_file_of_the_same_name_does_not_replace_the_first() -> None:
    for text in ("first", "second"):
        put("calls.jsonl", call("a", text))
        run()
    assert {name: json.loads((INBOX / name).read_text())["text"] for name in there()} == {"done/calls.jsonl": "first", "done/calls-2.jsonl": "second"}


def test_a_file_that_comes_while_another_is_read_is_next() -> None:
    put("a.jsonl", call("a"))

    def meanwhile(file: Path) -> None:
        if file.name == "a.jsonl":
            put("b.jsonl", call("b"))

    _, told = run(2, meanwhile)
    assert told == ["done/a.jsonl", "done/b.jsonl"]


def test_a_file_stays_where_it_is_when_the_run_is_stopped_in_it_and_the_next_run_ends_it() -> None:
    put("calls.jsonl", call("a"), call("b"), "no JSON")
    asked: list[bool] = []

    def soon() -> bool:
        asked.append(True)
        return len(asked) > 3  # the loop, then the first two lines

    summary, told = run(stopped=soon)
    assert (told, there()) == (["calls.jsonl"], ["calls.jsonl"])
    assert summary.documents == 2
    again, _ = run()
    assert (again.skipped, again.documents, again.failed) == (2, 0, 1)
    assert there() == ["failed/calls.jsonl", "failed/calls.jsonl.rejected.jsonl"]


def test_a_file_is_moved_only_after_what_it_holds_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    put("calls.jsonl", call("a"))
    held: list[int] = []
    settled = Inbox.settled

    def counted(self: Inbox, file: Path, *, failed: bool) -> Path:
        held.append(count())
        return settled(self, file, failed=failed)

    monkeypatch.setattr(Inbox, "settled", counted)
    run()
    assert held == [1]


def test_a_folder_that_is_none_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"--follow nowhere: No such file or directory\. Give a folder that can be written to"):
        Inbox(Path("nowhere")).prepare()
    with pytest.raises(UsageError, match=r"--follow nowhere: No such file or directory\. Give a folder that can be read"):
        Inbox(Path("nowhere")).waiting()
    assert invoke("ingest", "--follow", "nowhere").error.startswith("--follow nowhere: ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["x.jsonl"], "both --follow and sources (x.jsonl): give one of them"),
        (["--sample"], "both --sample and --follow: give one of them"),
        (["--from-index", "raw"], "both --from-index and --follow: give one of them"),
        (["--rejects", "r"], "--rejects r is not for --follow, which writes refused documents beside their file in failed/: leave it out"),
    ],
)
def test_one_kind_of_source_at_a_time(more: list[str], said: str) -> None:
    assert invoke("ingest", "--follow", "inbox", *more).error == said


def started() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hybrid_search.ingest", "--follow", "inbox", "--url", "embedded:store", "--where", "kind=call"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def waited(what: Callable[[], bool], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def kind(id: str, kind: str = "call") -> dict[str, Any]:
    return {**call(id), "kind": kind}
