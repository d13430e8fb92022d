"""The embedded backend after something went wrong.

Graph files are lost or damaged, writers are killed, several processes use an index, disks are full.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.backends.embedded import near_passages, schema, segment_builder, segments
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.errors import IndexBusyError, IndexMissingError, IndexStoreError
from hybrid_search.system import file_digest
from tests.helpers.tiny_encoder import bm25_scores, fill_index, make_request, make_spec

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
SMALL = {"TAIL_PASSAGES": 20, "SEGMENT_PASSAGES": 100}


def walk(number: int, version: str = "first") -> dict[str, Any]:
    """Return a document of 60 words, all but one from a common vocabulary."""
    return {
        "id": f"d{number:03d}",
        "text": f"{version} " + " ".join(f"word{number * step % 701}" for step in range(1, 60)),
    }


WALKS = [walk(number) for number in range(400)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make segments so small that a few hundred documents need several, and let them be used."""
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", 150)
    for name, value in SMALL.items():
        monkeypatch.setattr(segment_builder, name, value)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of `WALKS` in four segments; tests work on a copy of it.

    The last segment was extended in a second run; ``older`` is the index before that run.
    """
    folder = tmp_path_factory.mktemp("original")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(segment_builder, name, value)
        ingest_documents(folder / "index", WALKS[:320])
        shutil.copytree(folder / "index", folder / "older")
        ingest_documents(folder / "index", WALKS[320:])
    assert len(list_segments(folder / "index")) == len(list_segments(folder / "older")) == 4
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path, small: None) -> Path:
    """A copy of the index that keeps the times of its files."""
    return Path(shutil.copytree(original / "index", tmp_path / "index"))


def ingest_documents(folder: Path, documents: Sequence[dict[str, Any]]) -> None:
    with closing(EmbeddedBackend(folder)) as store:
        fill_index(store, documents)


def list_segments(folder: Path) -> list[Segment]:
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        return segments.list_segments(connection)


def segment_paths(folder: Path) -> list[Path]:
    return sorted((folder / "calls.spans").iterdir())


def answers(folder: Path, method: str | None = None) -> list[list[str]]:
    """Return the ids of the best passages for a few phrases, from an index that is opened now."""
    ids_per_phrase = []
    with closing(EmbeddedBackend(folder)) as store:
        for phrase in ("word7 word14 word21", "word350", "word699 word697"):
            span_request = make_request(phrase, 50, lexical=False)
            candidates = store.find_candidates("calls", span_request)
            ids_per_phrase.append(
                [
                    passage.document_id
                    for passage in store.complete_candidates(
                        "calls", span_request, list(candidates.semantic)
                    )
                ]
            )
            assert method is None or candidates.method == method
    return ids_per_phrase


def assert_sound(folder: Path) -> None:
    """Check that every document is there once, with all its passages, and that SQLite is intact.

    SQLite checks its file and its full-text index.
    """
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
        documents, ids = connection.execute(
            "SELECT count(*), count(DISTINCT id) FROM documents"
        ).fetchone()
        passages, promised = (
            connection.execute(f"SELECT {count}").fetchone()[0]
            for count in ("count(*) FROM passages", "coalesce(sum(passages), 0) FROM documents")
        )
        texts, codes = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("texts", "tokens")
        )
    assert documents == ids
    assert passages == promised == texts == codes


# Segments that are lost or damaged


def lose_one(folder: Path) -> None:
    segment_paths(folder)[1].unlink()


def lose_all(folder: Path) -> None:
    shutil.rmtree(folder / "calls.spans")


def cut_one(folder: Path) -> None:
    os.truncate(segment_paths(folder)[1], segment_paths(folder)[1].stat().st_size // 2)


def empty_one(folder: Path) -> None:
    os.truncate(segment_paths(folder)[1], 0)


def flip_bytes(folder: Path) -> None:
    path = segment_paths(folder)[1]
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) // 3 + 200):
        data[place] ^= 0xFF
    path.write_bytes(data)


def flip_one_byte(folder: Path) -> None:
    path = segment_paths(folder)[0]
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def swap_two(folder: Path) -> None:
    first, second, *_ = segment_paths(folder)
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def overwrite_and_keep_the_time(path: Path, data: bytes) -> None:
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def flip_three_bits_and_keep_the_time(folder: Path) -> None:
    data, generator = bytearray(segment_paths(folder)[1].read_bytes()), np.random.default_rng(1)
    for _ in range(3):
        data[generator.integers(2 * len(data) // 3, len(data))] ^= 1 << generator.integers(8)
    overwrite_and_keep_the_time(segment_paths(folder)[1], bytes(data))


def write_noise_and_keep_the_time(folder: Path) -> None:
    path = segment_paths(folder)[-1]
    overwrite_and_keep_the_time(path, np.random.default_rng(2).bytes(path.stat().st_size))


def record_noise_as_what_was_written(folder: Path) -> None:
    """The digest tells nothing then, only that the file is none of short codes."""
    write_noise_and_keep_the_time(folder)
    digest = file_digest(segment_paths(folder)[-1])
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE segments SET sha256 = ? WHERE segment = (SELECT max(segment) FROM segments)",
            (digest,),
        )


def put_older_segments_back(folder: Path, original: Path) -> None:
    shutil.rmtree(folder / "calls.spans")
    shutil.copytree(original / "older" / "calls.spans", folder / "calls.spans")


def put_an_older_file_in_the_newests_place(folder: Path, original: Path) -> None:
    shutil.copy2(segment_paths(original / "older")[-1], segment_paths(folder)[-1])


FAULTS: list[Callable[..., None]] = [
    lose_one,
    lose_all,
    cut_one,
    empty_one,
    flip_bytes,
    flip_one_byte,
    swap_two,
    flip_three_bits_and_keep_the_time,
    write_noise_and_keep_the_time,
    record_noise_as_what_was_written,
    put_older_segments_back,
    put_an_older_file_in_the_newests_place,
]


def apply_fault(fault: Callable[..., None], folder: Path, original: Path) -> None:
    fault(folder, original) if "older" in fault.__name__ else fault(folder)


def test_a_sound_index_says_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers(folder, "short codes in 4 segments")
    ingest_documents(folder, [])
    assert caplog.text == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reader_still_answers_right_and_says_so(
    folder: Path, original: Path, caplog: pytest.LogCaptureFixture, fault: Callable[..., None]
) -> None:
    expected = answers(folder)
    apply_fault(fault, folder, original)
    assert answers(folder) == expected
    assert "passages are read from the word codes. The next ingest makes it again" in caplog.text
    assert all(record.levelno == logging.WARNING for record in caplog.records)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_writer_repairs_it_and_says_so(
    folder: Path, original: Path, caplog: pytest.LogCaptureFixture, fault: Callable[..., None]
) -> None:
    expected = answers(folder)
    apply_fault(fault, folder, original)
    ingest_documents(folder, [])
    assert "made again from the codes of passages" in caplog.text
    assert all(
        segment.find_fault(folder / "calls.spans") is None for segment in list_segments(folder)
    )
    assert segment_paths(folder) == sorted(
        segment.path(folder / "calls.spans") for segment in list_segments(folder)
    )
    caplog.clear()
    assert answers(folder, "short codes in 4 segments") == expected
    assert caplog.text == ""


def test_the_fault_is_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lost, cut, damaged, _ = segment_paths(folder)
    lost.unlink()
    size = cut.stat().st_size
    os.truncate(cut, 100)
    damaged.write_bytes(bytes(damaged.stat().st_size))
    answers(folder)
    assert f"{lost} is missing: its " in caplog.text
    assert f"{cut} has 100 bytes where {size} were written: its " in caplog.text
    assert f"{damaged} is not the file that was written, or is damaged: its " in caplog.text


def test_a_reader_says_it_once_and_takes_what_the_writer_repaired(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    span_request = make_request("word350", lexical=False)
    lose_one(folder)
    with closing(EmbeddedBackend(folder)) as reader:
        assert reader.find_candidates("calls", span_request).method == "short codes in 3 segments"
        reader.find_candidates("calls", span_request)
        assert len(caplog.records) == 1
        ingest_documents(folder, [])
        assert reader.find_candidates("calls", span_request).method == "short codes in 4 segments"


def test_an_index_copied_without_the_times_of_its_files_is_as_good(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in segment_paths(folder):
        os.utime(path, (1, 1))
    answers(folder, "short codes in 4 segments")
    ingest_documents(folder, [])
    assert caplog.text == ""


def test_leftover_files_are_passed_over_and_swept_up(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected, expected_paths = answers(folder), segment_paths(folder)
    (folder / "calls.spans" / "unfinished.tmp").write_bytes(b"half of a segment")
    shutil.copy2(expected_paths[0], folder / "calls.spans" / "000099.codes")
    assert answers(folder, "short codes in 4 segments") == expected
    ingest_documents(folder, [])
    assert segment_paths(folder) == expected_paths
    assert caplog.text == ""


def test_an_older_index_put_back_among_newer_segments_is_that_older_index(
    folder: Path, original: Path
) -> None:
    expected = answers(original / "older")
    for path in folder.glob("calls.sqlite*"):
        path.unlink()
    shutil.copy2(original / "older" / "calls.sqlite", folder)
    assert answers(folder) == expected
    ingest_documents(folder, WALKS)
    assert answers(folder) == answers(original / "index")
    assert segment_paths(folder) == sorted(
        segment.path(folder / "calls.spans") for segment in list_segments(folder)
    )


def test_segments_without_their_index_hurt_no_new_one(folder: Path) -> None:
    for path in folder.glob("calls.sqlite*"):
        path.unlink()
    with pytest.raises(IndexMissingError):
        answers(folder)
    ingest_documents(folder, WALKS[:5])
    assert {name for ids in answers(folder) for name in ids} == {
        document["id"] for document in WALKS[:5]
    }
    assert segment_paths(folder) == []


def test_a_lost_segment_whose_passages_are_all_gone_is_made_again_as_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = list_segments(folder)[1]
    with closing(EmbeddedBackend(folder)) as store, store.writer("calls", make_spec()) as writer:
        assert (
            writer.delete([document["id"] for document in WALKS[segment.first - 1 : segment.last]])
            == segment.last - segment.first + 1
        )
    for name in ("FEWEST_CANDIDATES", "MOST_CANDIDATES"):  # all but one, deleted ones included
        monkeypatch.setattr(near_passages, name, 399)
    expected = answers(folder)
    segment.path(folder / "calls.spans").unlink()
    assert answers(folder) == expected
    ingest_documents(folder, [])
    assert answers(folder) == expected
    ingest_documents(folder, [])
    assert answers(folder) == expected


def test_a_sqlite_file_that_is_none_is_named_with_the_remedy(folder: Path) -> None:
    for path in folder.glob("calls.sqlite-*"):
        path.unlink()
    (folder / "calls.sqlite").write_text("not a database at all, just some text " * 200)
    with pytest.raises(
        IndexStoreError,
        match=r"calls\.sqlite is damaged .*: hybrid-search verify --index calls --repair saves .* "
        r"Or restore it from a backup, or delete it and ingest again",
    ):
        answers(folder)


@pytest.mark.parametrize("make_file", [Path.touch, schema.create])
def test_an_index_whose_writer_was_killed_while_making_it_says_so_and_can_be_made(
    tmp_path: Path, make_file: Callable[[Path], None]
) -> None:
    make_file(tmp_path / "calls.sqlite")
    with pytest.raises(
        IndexMissingError, match="the creation of index 'calls' was interrupted: ingest into it"
    ):
        answers(tmp_path)
    ingest_documents(tmp_path, WALKS[:5])
    assert len(answers(tmp_path)[0]) == 5


def test_a_sqlite_file_that_was_cut_off_is_named_with_the_remedy(folder: Path) -> None:
    for path in folder.glob("calls.sqlite-*"):
        path.unlink()
    os.truncate(folder / "calls.sqlite", (folder / "calls.sqlite").stat().st_size // 3)
    with pytest.raises(
        IndexStoreError,
        match=r"calls\.sqlite is damaged .*: hybrid-search verify --index calls --repair saves .* "
        r"Or restore it from a backup, or delete it and ingest again",
    ):
        answers(folder)


def test_a_place_that_is_no_folder_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexStoreError, match="file"):
        ingest_documents(tmp_path / "file", WALKS[:1])


# Writers that are killed


def short_calls(calls: list[dict[str, Any]], times: int) -> list[dict[str, Any]]:
    """Return the first turns of the calls of the hard sample, several times with new ids."""
    return [
        {**call, "id": f"{call['id']}-{time_}", "turns": call["turns"][:2]}
        for time_ in range(times)
        for call in calls
    ]


def write_documents(path: Path, documents: Sequence[dict[str, Any]]) -> Path:
    path.write_text(
        "".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8"
    )
    return path


def command(url: str, *sources: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "hybrid_search.ingest",
        "--index",
        "calls",
        "--device",
        "cpu",
        "--url",
        url,
        *sources,
    ]


def test_an_ingest_that_is_killed_again_and_again_ends_with_every_document_once(
    tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    documents = short_calls(calls, 4)
    source, url, store = (
        write_documents(tmp_path / "calls.jsonl", documents),
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
        if (store / "calls.sqlite").exists() and (store / "calls.sqlite").stat().st_size:
            with closing(sqlite3.connect(store / "calls.sqlite")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
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


REWRITE = f"""
import sys
from pathlib import Path
from hybrid_search.backends.embedded import segment_builder
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from tests.ingest.test_recovery import WALKS, walk
from tests.helpers.tiny_encoder import fill_index
for name, value in {SMALL!r}.items():
    setattr(segment_builder, name, value)
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
    assert all(
        segment.find_fault(folder / "calls.spans") is None for segment in list_segments(folder)
    )
    assert segment_paths(folder) == sorted(
        segment.path(folder / "calls.spans") for segment in list_segments(folder)
    )
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
from hybrid_search import connect
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


def test_two_processes_read_while_one_writes(
    tmp_path: Path, calls: list[dict[str, Any]], small: None
) -> None:
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
            grown = totals[:-1] if totals[-1] == len(documents) - 1 else totals
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
        while not (tmp_path / "store" / "calls.sqlite").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        source = write_documents(tmp_path / "one.jsonl", [{"id": "x", "text": "refund"}])
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


def test_a_killed_writer_holds_no_lock(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    waiting = subprocess.Popen(
        command(url, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "store" / "calls.sqlite").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    waiting.kill()
    waiting.communicate()
    with connect(url, device="cpu") as client:
        assert client.ingest([{"id": "x", "text": "refund"}]).documents == 1


# A full disk


def test_a_database_that_may_not_grow_keeps_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original_connect = schema.connect

    def connect_limited(path: Path | str, **options: Any) -> sqlite3.Connection:
        connection = original_connect(path, **options)
        connection.execute("PRAGMA max_page_count = 200")
        return connection

    with closing(EmbeddedBackend(tmp_path)) as store:
        with monkeypatch.context() as patch:
            patch.setattr(schema, "connect", connect_limited)
            with pytest.raises(
                IndexStoreError,
                match=r"the disk is full at .*calls\.sqlite: "
                r"what was committed is safe\. Free space",
            ):
                fill_index(store, WALKS)
        committed = store.describe_index("calls").documents
        assert 0 < committed < len(WALKS)
        assert_sound(tmp_path)
        store.close()
        summary = fill_index(store, WALKS)
        assert (summary.skipped, summary.documents) == (committed, len(WALKS) - committed)
        assert len(bm25_scores(store, "first")) == len(WALKS)
    assert_sound(tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB; the test is skipped if this process may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    mounted = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
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
    source, url = write_documents(tmp_path / "calls.jsonl", documents), f"embedded:{disk / 'store'}"
    ingest = command(url, "--codes", "8", str(source))
    failed = subprocess.run(ingest, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    told = json.loads(failed.stdout)["documents"]
    assert failed.stderr.splitlines()[-1].startswith(
        f"error: the disk is full at {disk / 'store' / 'calls.sqlite'}: what was committed is safe."
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


def test_a_disk_too_full_for_a_segment_is_one_clear_error_too(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk / "store"
    ingest_documents(store, WALKS[:120])
    (disk / "other.bin").write_bytes(
        bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 50_000)
    )
    for name, value in SMALL.items():
        monkeypatch.setattr(segment_builder, name, value)
    with pytest.raises(
        IndexStoreError,
        match=r"What was committed is safe: free space and run the same command again",
    ):
        ingest_documents(store, [])
    assert len(answers(store, "exact")[0]) == 50
    (disk / "other.bin").unlink()
    ingest_documents(store, [])
    assert len(list_segments(store)) == 2
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", 0)
    assert len(answers(store, "short codes in 2 segments")[0]) == 50
