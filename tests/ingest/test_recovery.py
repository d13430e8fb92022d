"""The embedded backend after something went wrong.

Writers are killed, several processes use an index, disks are full.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.encoder.base import codebook
from hybrid_search.errors import IndexBusyError
from tests.helpers.json_lines import write_rows
from tests.helpers.tiny_encoder import bm25_scores, fill_index, make_request, make_spec

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
HEAD = Path("calls.index/head.json")


def walk(number: int, version: str = "first") -> dict[str, Any]:
    """Return a document of 60 words, all but one from a common vocabulary."""
    return {
        "id": f"d{number:03d}",
        "text": f"{version} " + " ".join(f"word{number * step % 701}" for step in range(1, 60)),
    }


WALKS = [walk(number) for number in range(400)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of `WALKS`; tests work on a copy of it."""
    folder = tmp_path_factory.mktemp("original") / "index"
    ingest_documents(folder, WALKS)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the index."""
    return Path(shutil.copytree(original, tmp_path / "index"))


def ingest_documents(folder: Path, documents: Sequence[dict[str, Any]]) -> None:
    with closing(EmbeddedBackend(folder)) as store:
        fill_index(store, documents)


def answers(folder: Path) -> list[list[str]]:
    """Return the ids of the best passages for a few phrases, from an index that is opened now."""
    ids_per_phrase = []
    with closing(EmbeddedBackend(folder)) as store:
        for phrase in ("word7 word14 word21", "word350", "word699 word697"):
            span_request = make_request(phrase, 50, lexical=False)
            found = store.find("calls", span_request).passages
            ids_per_phrase.append([passage.document_id for passage in found])
    return ids_per_phrase


def assert_sound(folder: Path) -> None:
    """Check that every document is there once, with all its passages, and that all is intact."""
    codebook(encoder.truncate_encoder(encoder.load(device="cpu")))  # codes are read with it
    with closing(EmbeddedBackend(folder)) as store:
        rows = list(store.iterate_passages("calls", full=True))
        assert not [row for row in rows if row.faults]
        expected: dict[str, int] = {row.document_id: row.passages for row in rows}
        places = {(row.document_id, row.ordinal) for row in rows}
        assert len(places) == len(rows) == sum(expected.values())
        assert store.describe_index("calls").documents == len(expected)
        assert all((name, 0) in places for name in expected)


# Writers that are killed


def short_calls(calls: list[dict[str, Any]], times: int) -> list[dict[str, Any]]:
    """Return the first turns of the calls of the hard sample, several times with new ids."""
    return [
        {**call, "id": f"{call['id']}-{time_}", "turns": call["turns"][:2]}
        for time_ in range(times)
        for call in calls
    ]


def command(url: str, *sources: str) -> list[str]:
    options = ["--index", "calls", "--device", "cpu", "--url", url]
    return [sys.executable, "-m", "hybrid_search.ingest", *options, *sources]


def test_an_ingest_that_is_killed_again_and_again_ends_with_every_document_once(
    tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    documents = short_calls(calls, 4)
    source, url, store = (
        write_rows(tmp_path / "calls.jsonl", documents),
        f"embedded:{tmp_path / 'store'}",
        tmp_path / "store",
    )
    chance = random.Random()  # noqa: S311
    for _ in range(6):
        process = subprocess.Popen(
            command(url, str(source)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        time.sleep(random_delay(chance, 0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (store / HEAD).exists():
            assert_sound(store)
    finished = subprocess.run(command(url, str(source)), capture_output=True, check=True, text=True)
    summary = json.loads(finished.stdout.splitlines()[-1])
    assert summary["documents"] + summary["skipped"] == summary["read"] == len(documents)
    assert_sound(store)
    with connect(url) as client:
        result = client.query("Good morning, how can I help?", alpha=1.0, size=10_000, spans=0)
        assert sorted(hit.id for hit in result) == sorted(document["id"] for document in documents)
        assert client.describe().documents == len(documents)


def random_delay(chance: random.Random, least: float, most: float) -> float:
    """Return a random number of seconds, and print it: pytest shows it if the test fails."""
    seconds = chance.uniform(least, most)
    print(f"killed after {seconds:.3f} s")
    return seconds


REWRITE = """
import sys
from pathlib import Path
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from tests.ingest.test_recovery import WALKS, walk
from tests.helpers.tiny_encoder import fill_index
print("begun", flush=True)
folder, version = Path(sys.argv[1]), sys.argv[2]
documents = [walk(number, version) for number in range(len(WALKS))]
fill_index(EmbeddedBackend(folder), documents, folder / "rejected.jsonl")
print("ended", flush=True)
"""


def rewrite(folder: Path, version: str) -> subprocess.Popen[str]:
    """Start a process that replaces every document by another version of it.

    It spends nearly all of its time writing.
    """
    return subprocess.Popen(
        [sys.executable, "-c", REWRITE, str(folder), version],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_rewrite_that_is_killed_loses_no_document_and_mixes_no_versions(folder: Path) -> None:
    chance = random.Random()  # noqa: S311
    for version in ("second", "third", "fourth"):
        for _ in range(3):
            process = rewrite(folder, version)
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(random_delay(chance, 0.0, 1.2))
            process.kill()
            process.communicate()
            assert_sound(folder)
            with closing(EmbeddedBackend(folder)) as store:
                versions = [
                    set(bm25_scores(store, word)) for word in ("first", "second", "third", "fourth")
                ]
            assert sum(map(len, versions)) == len(set().union(*versions)) == len(WALKS)
    process = rewrite(folder, "fourth")
    assert process.communicate()[0] == "begun\nended\n"
    assert_sound(folder)
    with closing(EmbeddedBackend(folder)) as store:
        assert len(bm25_scores(store, "fourth")) == len(WALKS)
    fresh = folder.parent / "fresh"
    ingest_documents(fresh, [walk(number, "fourth") for number in range(len(WALKS))])
    assert answers(folder) == answers(fresh)


def test_a_writer_that_fails_leaves_what_it_committed(folder: Path) -> None:
    def documents() -> Iterator[dict[str, Any]]:
        yield from (walk(number, "second") for number in range(300))
        raise KeyboardInterrupt

    with closing(EmbeddedBackend(folder)) as store:
        with pytest.raises(KeyboardInterrupt):
            fill_index(store, documents())
        assert set(bm25_scores(store, "first")) | set(bm25_scores(store, "second")) == {
            document["id"] for document in WALKS
        }
    assert_sound(folder)
    ingest_documents(folder, [walk(number, "second") for number in range(400)])
    with closing(EmbeddedBackend(folder)) as store:
        assert len(bm25_scores(store, "second")) == 400


# Several processes

READ = """
import json, sys
from pathlib import Path
from hybrid_search import connect, encoder
totals = []
with connect(sys.argv[1], device="cpu") as client:
    print("begun", flush=True)
    while not (totals and Path(sys.argv[2]).exists()):
        result = client.query("Good morning, how can I help?", size=1000, spans=1)
        for hit in result:
            for span in hit.spans:
                assert hit.text[span.start - hit.start : span.end - hit.start] == span.text
        assert len({hit.id for hit in result}) == result.total
        totals.append(result.total)
print(json.dumps(totals))
"""


def test_two_processes_read_while_one_writes(tmp_path: Path, calls: list[dict[str, Any]]) -> None:
    url, stop = f"embedded:{tmp_path / 'store'}", tmp_path / "stop"
    documents = short_calls(calls, 3)
    with connect(url, device="cpu") as client:
        client.ingest(documents[:20])
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", READ, url, str(stop)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        try:
            assert all(
                reader.stdout is not None and reader.stdout.readline() == "begun\n"
                for reader in readers
            )
            client.ingest(documents)
            client.delete([document["id"] for document in documents[:1]])
        finally:
            stop.touch()
            outputs = [reader.communicate()[0] for reader in readers]
        assert [reader.returncode for reader in readers] == [0, 0]
        for output in outputs:
            totals = json.loads(output)
            assert totals
            grown = list(totals)
            while grown and grown[-1] == len(documents) - 1:
                grown.pop()  # asked after the last was deleted, once or more often
            assert grown == sorted(grown)
            assert set(totals) <= set(range(20, len(documents) + 1))
        assert client.query("Good morning", alpha=1.0, size=1000).total == len(documents) - 1
    assert_sound(tmp_path / "store")


def test_a_document_that_is_deleted_while_a_query_runs_is_neither_shown_nor_counted(
    tmp_path: Path, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(f"embedded:{tmp_path / 'store'}", device="cpu") as client:
        client.ingest(short_calls(calls, 1)[:5])
        deleted_id = client.query("Good morning", size=10).hits[1].id
        contents = client.backend.fetch_contents

        def delete_before_contents(*args: Any) -> Any:
            """Delete the document as another process might, after the scores were computed."""
            client.delete([deleted_id])
            return contents(*args)

        monkeypatch.setattr(client.backend, "fetch_contents", delete_before_contents)
        result = client.query("Good morning", size=10)
        assert deleted_id not in {hit.id for hit in result}
        assert len(result.hits) == result.total == 4


def test_a_second_writer_is_refused_at_once_and_readers_are_not(folder: Path) -> None:
    with closing(EmbeddedBackend(folder)) as first, closing(EmbeddedBackend(folder)) as second:
        with first.writer("calls", make_spec()):
            for operation in (
                lambda: second.writer("calls", make_spec()),
                lambda: second.drop_index("calls"),
            ):
                started_at = time.monotonic()
                with pytest.raises(
                    IndexBusyError,
                    match="'calls' is being written by another process: wait for it to end",
                ):
                    operation()
                assert time.monotonic() - started_at < 1
            assert second.describe_index("calls").documents == len(WALKS)
            with second.writer("other", make_spec()):
                pass
        with second.writer("calls", make_spec()):
            pass


def test_the_command_refuses_an_index_that_another_process_writes(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    waiting = subprocess.Popen(
        command(url, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "store" / HEAD).exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        source = write_rows(tmp_path / "one.jsonl", [{"id": "x", "text": "refund"}])
        refused = subprocess.run(
            command(url, str(source)), capture_output=True, text=True, check=False
        )
        assert refused.returncode == 2
        assert refused.stderr.splitlines()[-1].startswith(
            "error: index 'calls' is being written by another process"
        )
        assert "Traceback" not in refused.stderr
        output, _ = waiting.communicate(b'{"id": "y", "text": "refund"}\n')
        assert json.loads(output)["documents"] == 1
        assert waiting.returncode == 0
    finally:
        waiting.kill()
        waiting.communicate()


# A full disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; the test is skipped if this process may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    mounted = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if not mounted or mounted.returncode:
        pytest.skip("this process may not mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def enlarge(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)


def test_a_full_disk_is_one_clear_error_and_the_same_command_completes_later(
    disk: Path, tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    documents = short_calls(calls, 3)
    source, url = write_rows(tmp_path / "calls.jsonl", documents), f"embedded:{disk / 'store'}"
    ingest = command(url, "--codes", "8", str(source))
    failed = subprocess.run(ingest, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    told = json.loads(failed.stdout)["documents"]
    assert failed.stderr.splitlines()[-1].startswith(
        f"error: the disk is full at {disk / 'store' / 'calls.index'}: what was committed is safe."
    )
    enlarge(disk)
    with connect(url, device="cpu") as client:
        committed = client.describe().documents
        assert 0 < committed < len(documents)
        assert told == committed
    assert_sound(disk / "store")
    completed = subprocess.run(ingest, capture_output=True, text=True, check=True)
    summary = json.loads(completed.stdout.splitlines()[-1])
    assert (summary["skipped"], summary["documents"]) == (committed, len(documents) - committed)
    assert_sound(disk / "store")
