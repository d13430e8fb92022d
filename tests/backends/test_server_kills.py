"""Workers and servers that are killed (-9) at any moment.

After the same command again every document is there exactly once.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder import Encoder
from hybrid_search.ingest.sources import files
from tests.conftest import DATA
from tests.helpers.server_index import (
    TINY,
    Call,
    Expect,
    RawIndex,
    assert_index_holds,
    expected_passages,
    find_skipped_ids,
    make_calls,
    outline_passages,
)
from tools.servers import RELEASES, Running, layout, start
from tools.servers.install import is_complete

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        not os.environ.get("HYBRID_SEARCH_TEST_URLS"),
        reason="HYBRID_SEARCH_TEST_URLS names no server: make test-servers",
    ),
]

ROOT = Path(__file__).parents[2]


# Workers that are killed

WORKER = """
import json, sys
from pathlib import Path
from hybrid_search.credentials import Access
from hybrid_search.backends import open_backend
from hybrid_search.errors import HybridSearchError
from hybrid_search.ingest import pipeline, prepare
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.sources import files
from tests.helpers.tiny_encoder import TinyEncoder

def say(number):
    print(number, file=sys.stderr, flush=True)

url, index, source = sys.argv[1:]
pipeline.BLOCK_PASSAGES, prepare.LOOKUP_DOCUMENTS = 16, 20
say(0)
try:
    lines, backend = files.read([source]), open_backend(url, Access())
    report = lambda so_far: say(so_far.passages)
    options = IngestOptions(index, Path("rejected.jsonl"), report=report)
    summary = pipeline.ingest(lines, backend, TinyEncoder(), options)
except HybridSearchError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
print(json.dumps(summary.to_dict()))
"""
"""The command ``ingest`` with the tiny encoder. It says on standard error how many passages it has
written.
"""


@dataclass(frozen=True, slots=True)
class Worker:
    """How ``ingest`` is run as a process.

    It has the command, to which URL, index and source are added; the passages that its documents
    have on the server; and a check whether it has written a number of passages.
    """

    command: Callable[[RawIndex, Path], list[str]]
    made_for: IndexSpec
    expect: Expect
    has_written: Callable[[RawIndex, Path, int], bool]


def tiny_command(place: RawIndex, source: Path) -> list[str]:
    return [sys.executable, "-c", WORKER, place.url, place.index, str(source)]


def has_reported(_: RawIndex, folder: Path, passages: int) -> bool:
    """Check by the output of the tiny worker."""
    lines = [line for line in (folder / "err").read_text().splitlines() if line.isdecimal()]
    return bool(lines) and int(lines[-1]) >= passages


TINY_WORKER = Worker(tiny_command, TINY, expected_passages, has_reported)


def command_line(place: RawIndex, source: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "hybrid_search.ingest",
        "--device",
        "cpu",
        "--url",
        place.url,
        "--index",
        place.index,
        str(source),
    ]


def has_stored(place: RawIndex, _: Path, passages: int) -> bool:
    """Check by the passages on the server."""
    time.sleep(0.2)
    return place.count_passages() >= passages


def real_worker(encoder: Encoder) -> Worker:
    """The command itself."""
    made_for = IndexSpec.from_encoder(encoder.info, DEFAULT_POLICY)
    return Worker(
        command_line, made_for, partial(outline_passages, index_spec=made_for), has_stored
    )


@contextmanager
def start_worker(
    worker: Worker, place: RawIndex, folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker on ``calls.jsonl`` in `folder`, and kill it at the end of the block.

    Its output is in the files ``out`` and ``err``.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "out").open("wb") as out_file, (folder / "err").open("wb") as err_file:
        process = subprocess.Popen(
            worker.command(place, folder / "calls.jsonl"),
            stdout=out_file,
            stderr=err_file,
            env=environment,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_summary(process: subprocess.Popen[bytes], folder: Path) -> Any:
    """Wait for a worker, and return its summary."""
    assert process.wait(timeout=1800) == 0, (folder / "err").read_text()[-3000:]
    return json.loads((folder / "out").read_text().splitlines()[-1])


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """Wait until the check holds; return False if the worker ended before that."""
    while not holds():
        if process.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def write_documents(documents_: Iterable[Call], folder: Path) -> None:
    (folder / "calls.jsonl").write_text(
        "".join(json.dumps(document) + "\n" for document in documents_)
    )


def ingest_with_kills(
    worker: Worker,
    place: RawIndex,
    folder: Path,
    kills: int,
    versions: Iterable[Sequence[Call]],
    often: int,
) -> None:
    """Ingest the `versions` of some documents in turn, by workers that are killed.

    They are killed at random moments, so many in all. For each version one worker is left to end;
    afterwards everything is there. Before that no incomplete document counts as complete. A worker
    writes at most one part in `often` of a version before it is killed.
    """
    chance = random.Random()  # noqa: S311
    for documents_ in versions:
        write_documents(documents_, folder)
        ids = {document["id"] for document in documents_}
        apart = sum(len(worker.expect(document)) for document in documents_) // often
        while kills and ids:
            kills -= kill_worker(worker, place, folder, chance, chance.randrange(apart))
            place.wait_for_writes()  # else a document changes between two looks at it
            ids -= (
                find_skipped_ids(place, documents_, worker.made_for)
                if place.list_names()
                else set()
            )
        with start_worker(worker, place, folder) as process:
            summary = wait_for_summary(process, folder)
        assert (summary["documents"], summary["skipped"]) == (len(ids), len(documents_) - len(ids))
        assert_index_holds(place, documents_, worker.expect)
        if not kills:
            return
    raise AssertionError(f"all was written, and {kills} kills were left")


def kill_worker(
    worker: Worker, place: RawIndex, folder: Path, chance: random.Random, more: int
) -> bool:
    """Return whether a worker was killed after this many `more` passages, before it ended."""
    before = place.count_passages() if worker.has_written is has_stored else 0
    with start_worker(worker, place, folder) as process:
        wait_until(partial(worker.has_written, place, folder, before + more), process)
        pause = chance.uniform(0, 0.2)
        time.sleep(pause)
        running = process.poll() is None
    print(
        f"killed {pause:.3f} s after {more} passages"
        if running
        else "ended before it could be killed"
    )
    return running


def turns(version: int, call_: int) -> int:
    return 2 + (call_ + 3 * version) % 7


def versions(documents_: int) -> Iterator[list[Call]]:
    """Return versions of the same calls, in which a call becomes shorter or longer."""
    for number in itertools.count():
        yield make_calls(f"version{number}", partial(turns, number), documents_)


def real_calls() -> list[Call]:
    """2,000 calls between customers and agents."""
    lines = islice(files.read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), 2000)
    return [json.loads(line.data) for line in lines]


def test_a_worker_that_is_killed_at_any_moment_is_completed_by_the_same_command(
    place: RawIndex, tmp_path: Path
) -> None:
    call_versions = versions(50)
    place.ingest(next(call_versions))
    ingest_with_kills(TINY_WORKER, place, tmp_path, 3, call_versions, often=3)


@pytest.mark.long
def test_a_worker_that_replaces_documents_may_be_killed_at_twenty_moments(
    place: RawIndex, tmp_path: Path
) -> None:
    ingest_with_kills(TINY_WORKER, place, tmp_path, 20, versions(120), often=3)


@pytest.mark.long
@pytest.mark.data
def test_a_worker_that_writes_two_thousand_calls_may_be_killed_at_twenty_moments(
    place: RawIndex, tmp_path: Path, real_encoder: Encoder
) -> None:
    ingest_with_kills(real_worker(real_encoder), place, tmp_path, 20, [real_calls()], often=20)


# Servers


@contextmanager
def start_own_server(name: str) -> Iterator[Running]:
    """Start a server that no other test uses."""
    if not is_complete(RELEASES[name]):
        pytest.skip(f"{name} is not fetched: make test-servers does it")
    with start(name) as server:
        yield server


def assert_outlives(
    worker: Worker, name: str, folder: Path, kills: int, documents_: Sequence[Call]
) -> None:
    """Ingest `documents_` while the server is killed and restarted on the same data."""
    chance = random.Random()  # noqa: S311
    write_documents(documents_, folder)
    slice_ = sum(len(worker.expect(document)) for document in documents_) // (kills + 1)
    with start_own_server(name) as server:
        place = RawIndex(f"{server.test_url}&shards=2", "calls")
        with start_worker(worker, place, folder) as process:
            for number in range(kills):
                assert wait_until(
                    partial(
                        worker.has_written,
                        place,
                        folder,
                        slice_ * number + chance.randrange(slice_),
                    ),
                    process,
                )
                time.sleep(chance.uniform(0, 0.2))
                assert process.poll() is None
                server.kill()
                time.sleep(chance.uniform(0, 2))
                server.restart()
            summary = wait_for_summary(process, folder)
        assert (summary["documents"], summary["failed"]) == (len(documents_), 0)
        assert_index_holds(place, documents_, worker.expect)
        assert find_skipped_ids(place, documents_, worker.made_for) == {
            document["id"] for document in documents_
        }


def test_a_worker_outlives_a_server_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        layout, "HEAP", ("-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1")
    )  # it starts in half of the time
    assert_outlives(TINY_WORKER, "opensearch-3.5.0", tmp_path, 1, next(versions(150)))


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("name", ["opensearch-3.5.0", "elasticsearch-9.5.3"])
def test_a_worker_outlives_a_server_that_is_killed_five_times(
    name: str, tmp_path: Path, real_encoder: Encoder
) -> None:
    assert_outlives(real_worker(real_encoder), name, tmp_path, 5, real_calls())
