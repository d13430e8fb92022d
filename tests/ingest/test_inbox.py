"""A watched folder: where each file goes, in which order, also if a run is stopped or killed."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.sources import inbox as follow_module
from hybrid_search.ingest.sources.inbox import Inbox, follow
from hybrid_search.ingest.summary import Summary
from tests.helpers.cli import invoke_cli
from tests.helpers.ingest_process import start_ingest
from tests.helpers.tiny_encoder import TinyEncoder

INBOX = Path("inbox")
SECONDS = 240.0


@pytest.fixture(autouse=True)
def _fast_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "POLL_SECONDS", 0.01)
    INBOX.mkdir()


def drop_file(name: str, *documents: dict[str, Any] | str, age: float = 0.0) -> Path:
    """Move a file into the folder, as one that was written `age` seconds ago."""
    hidden = INBOX / f".{name}.writing"
    hidden.write_text(
        "".join(
            f"{document if isinstance(document, str) else json.dumps(document)}\n"
            for document in documents
        )
    )
    os.utime(hidden, (time.time() - age, time.time() - age))
    return hidden.rename(INBOX / name)


def make_document(id: str, text: str = "Where is my parcel?") -> dict[str, Any]:
    return {"id": id, "text": text}


def list_files(folder: Path = INBOX) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def follow_inbox(
    file_count: int = 1,
    meanwhile: Callable[[Path], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
    afterwards: Callable[[Path], None] = lambda _: None,
) -> tuple[Summary, list[str]]:
    """Follow the folder with the tiny encoder until `file_count` files are moved.

    Returns:
        The summary, and the names of the files in their order.
    """
    moved_files: list[str] = []

    def is_done() -> bool:
        return len(moved_files) == file_count or is_stopped()

    with connect("embedded:store") as client:

        def ingest_file(file: Path, rejects: Path) -> Summary:
            meanwhile(file)
            lines = itertools.takewhile(lambda _: not is_done(), files.read([str(file)]))
            summary = ingest(lines, client.backend, TinyEncoder(), IngestOptions("calls", rejects))
            afterwards(file)
            return summary

        inbox = Inbox(INBOX)
        inbox.prepare()
        return follow(
            inbox,
            ingest_file,
            is_done,
            lambda moved_path, _: moved_files.append(moved_path.relative_to(INBOX).as_posix()),
        ), moved_files


def stop_after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def count_documents() -> int:
    """Return how many documents are indexed."""
    with connect("embedded:store") as client:
        try:
            return client.describe("calls").documents
        except IndexMissingError:
            return 0


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ingests_what_comes_until_it_is_told_to_stop(kind: signal.Signals) -> None:
    process = start_ingest("--url", "embedded:store", "--follow", str(INBOX))
    wait_until((INBOX / "done").is_dir, process)
    drop_file("good.jsonl", *map(make_document, "abde"))
    wait_until((INBOX / "done/good.jsonl").exists, process)
    assert count_documents() == 4
    drop_file("bad.jsonl", make_document("c"), "no JSON")
    wait_until((INBOX / "failed/bad.jsonl").exists, process)
    process.send_signal(kind)
    output, lines = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, lines
    first, good, refused, *rest = lines.splitlines()
    assert first == "watching inbox for files, until SIGTERM or Ctrl-C"
    assert good.startswith("inbox/done/good.jsonl: 4 documents")
    assert refused.startswith("inbox/failed/bad.jsonl: ")
    assert rest[0] == "stopping: what was read is being finished; a second signal ends at once"
    assert "Traceback" not in lines
    summary = json.loads(output.splitlines()[-1])
    assert (summary["documents"], summary["failed"], summary["stopped"]) == (5, 1, True)
    assert count_documents() == 5


def test_files_go_to_done_the_oldest_first_and_are_counted_together() -> None:
    drop_file("new.jsonl", make_document("a"))
    drop_file("old.jsonl", make_document("b"), make_document("c"), age=60)
    drop_file("older.csv", "id,text", "d,hello", age=600)
    summary, moved_files = follow_inbox(3)
    assert moved_files == ["done/older.csv", "done/old.jsonl", "done/new.jsonl"]
    assert list_files() == ["done/new.jsonl", "done/old.jsonl", "done/older.csv"]
    assert (summary.read, summary.documents, summary.failed, summary.rejected) == (4, 4, 0, None)


def test_a_file_with_a_refused_document_goes_to_failed_with_the_reasons_beside_it() -> None:
    drop_file("bad.jsonl", make_document("a"), "no JSON", make_document("b"))
    summary, _ = follow_inbox()
    assert list_files() == ["failed/bad.jsonl", "failed/bad.jsonl.rejected.jsonl"]
    (entry,) = map(json.loads, (INBOX / "failed/bad.jsonl.rejected.jsonl").read_text().splitlines())
    assert (entry["source"], entry["line"], entry["document"]) == ("inbox/bad.jsonl", 2, "no JSON")
    assert (summary.documents, summary.failed, summary.rejected) == (
        2,
        1,
        "inbox/failed/bad.jsonl.rejected.jsonl",
    )


def test_a_file_that_cannot_be_read_goes_to_failed_and_the_next_is_ingested() -> None:
    packed = gzip.compress(json.dumps(make_document("cut")).encode() + b"\n")
    Path("cut.jsonl.gz").write_bytes(packed[:-8])
    os.utime("cut.jsonl.gz", (1, 1))
    Path("cut.jsonl.gz").rename(INBOX / "cut.jsonl.gz")
    drop_file("good.jsonl", make_document("a"))
    summary, moved_files = follow_inbox(2)
    assert moved_files == ["failed/cut.jsonl.gz", "done/good.jsonl"]
    assert "it is damaged, or cut off" in (INBOX / "failed/cut.jsonl.gz.rejected.jsonl").read_text()
    assert summary.documents == 2


def test_files_that_are_still_being_written_and_folders_are_left_alone() -> None:
    for name in (".hidden.jsonl", "calls.jsonl.tmp", "calls.jsonl.part"):
        (INBOX / name).write_text(json.dumps(make_document("a")))
    (INBOX / "folder").mkdir()
    (INBOX / "folder" / "calls.jsonl").write_text(json.dumps(make_document("a")))
    summary, moved_files = follow_inbox(is_stopped=stop_after(0.3))
    assert (moved_files, summary.read) == ([], 0)
    assert list_files() == [
        ".hidden.jsonl",
        "calls.jsonl.part",
        "calls.jsonl.tmp",
        "folder/calls.jsonl",
    ]


def append_line(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def test_a_file_is_taken_when_it_holds_still_and_then_whole() -> None:
    """It grows at each of the first looks, by half a line every time."""
    pieces = "".join(f"{json.dumps(make_document(str(number)))}\n" for number in range(3))
    half = len(pieces) // 8
    remaining = [pieces[start : start + half] for start in range(0, len(pieces), half)]
    file = drop_file("calls.jsonl")

    def write_on() -> bool:
        if remaining:
            append_line(file, remaining.pop(0))
        return False

    summary, moved_files = follow_inbox(is_stopped=write_on)
    assert moved_files == ["done/calls.jsonl"]
    assert (summary.read, summary.documents, summary.failed) == (3, 3, 0)


def test_a_file_that_grows_while_it_is_read_stays_until_the_rest_is_read_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = json.dumps(make_document("b"))
    append_line(drop_file("calls.jsonl", make_document("a")), line[:10])
    texts = [line[10:]]

    def write_rest(file: Path) -> None:
        if texts:
            append_line(file, texts.pop())

    summary, moved_files = follow_inbox(2, is_stopped=stop_after(60), afterwards=write_rest)
    assert moved_files == ["calls.jsonl", "done/calls.jsonl"]
    assert list_files() == ["done/calls.jsonl"]
    assert (summary.documents, summary.failed, count_documents()) == (2, 0, 2)
    assert "inbox/calls.jsonl changed while it was read" in caplog.text


def test_nothing_is_moved_through_a_link_and_only_the_owner_sees_what_was_moved() -> None:
    Path("elsewhere").mkdir()
    (INBOX / "done").symlink_to(Path("elsewhere").resolve())
    with pytest.raises(UsageError, match="inbox/done is a symbolic link"):
        Inbox(INBOX).prepare()
    (INBOX / "done").unlink()
    drop_file("bad.jsonl", "no JSON")
    follow_inbox()
    modes = {name: (INBOX / name).stat().st_mode & 0o777 for name in ("done", "failed")}
    assert modes == {"done": 0o700, "failed": 0o700}
    assert (INBOX / "failed/bad.jsonl.rejected.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_second_file_of_the_same_name_does_not_replace_the_first() -> None:
    for text in ("first", "second"):
        drop_file("calls.jsonl", make_document("a", text))
        follow_inbox()
    assert {name: json.loads((INBOX / name).read_text())["text"] for name in list_files()} == {
        "done/calls.jsonl": "first",
        "done/calls-2.jsonl": "second",
    }


def test_a_file_that_comes_while_another_is_read_is_next() -> None:
    drop_file("a.jsonl", make_document("a"))

    def meanwhile(file: Path) -> None:
        if file.name == "a.jsonl":
            drop_file("b.jsonl", make_document("b"))

    _, moved_files = follow_inbox(2, meanwhile)
    assert moved_files == ["done/a.jsonl", "done/b.jsonl"]


def test_a_file_stays_where_it_is_when_the_run_is_stopped_in_it_and_the_next_run_ends_it() -> None:
    drop_file("calls.jsonl", make_document("a"), make_document("b"), "no JSON")
    stop_checks: list[bool] = []

    def stop_soon() -> bool:
        stop_checks.append(True)
        return len(stop_checks) > 4  # the loop at its two first looks, then the first two lines

    summary, moved_files = follow_inbox(is_stopped=stop_soon)
    assert (moved_files, list_files()) == (["calls.jsonl"], ["calls.jsonl"])
    assert summary.documents == 2
    again, _ = follow_inbox()
    assert (again.skipped, again.documents, again.failed) == (2, 0, 1)
    assert list_files() == ["failed/calls.jsonl", "failed/calls.jsonl.rejected.jsonl"]


def test_a_file_is_moved_only_after_what_it_holds_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drop_file("calls.jsonl", make_document("a"))
    document_counts: list[int] = []
    settle = Inbox.move_ingested

    def count_and_settle(self: Inbox, file: Path, *, failed: bool) -> Path:
        document_counts.append(count_documents())
        return settle(self, file, failed=failed)

    monkeypatch.setattr(Inbox, "move_ingested", count_and_settle)
    follow_inbox()
    assert document_counts == [1]


def test_a_folder_that_is_none_is_an_error() -> None:
    message = r"--follow nowhere: No such file or directory\. Give a folder that can be written to"
    with pytest.raises(UsageError, match=message):
        Inbox(Path("nowhere")).prepare()
    message = r"--follow nowhere: No such file or directory\. Give a folder that can be read"
    with pytest.raises(UsageError, match=message):
        Inbox(Path("nowhere")).list_waiting()
    assert invoke_cli("ingest", "--follow", "nowhere").error.startswith("--follow nowhere: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.jsonl"], "both --follow and sources (x.jsonl): give one of them"),
        (["--sample"], "both --follow and --sample: give one of them"),
        (["--from-index", "raw"], "both --from-index and --follow: give one of them"),
        (
            ["--rejects", "r"],
            (
                "--rejects r is not for --follow, which writes refused documents beside their "
                "file in failed/: leave it out"
            ),
        ),
    ],
)
def test_one_kind_of_source_at_a_time(arguments: list[str], message: str) -> None:
    assert invoke_cli("ingest", "--follow", "inbox", *arguments).error == message


def test_a_symbolic_link_is_left_alone_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    Path("private.txt").write_text("root:x:0:0\n")
    (INBOX / "link.jsonl").symlink_to(Path("private.txt").resolve())
    drop_file("calls.jsonl", make_document("a"))
    summary, moved_files = follow_inbox(2, is_stopped=stop_after(0.3))
    assert (moved_files, summary.read, summary.failed) == (["done/calls.jsonl"], 1, 0)
    assert (INBOX / "link.jsonl").is_symlink()
    assert [record.getMessage() for record in caplog.records] == [
        "inbox/link.jsonl is a symbolic link and is left alone: move the file itself into the "
        "folder"
    ]
