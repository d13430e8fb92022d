"""What is served while a run runs: its numbers, and whether it gets on; and the table that says where its time went."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends.base import Refusal, Writer
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.server import retry
from hybrid_search.errors import ServerError, UsageError
from hybrid_search.ingest import stages, worker
from hybrid_search.ingest.metrics import PREFIX, served
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.watch import Watch
from hybrid_search.types import Entry
from tests.program import invoke
from tests.tiny import TinyEncoder

HOST = "127.0.0.1"


def asked(port: int, path: str) -> tuple[int, str]:
    """Status and body."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=10) as answer:  # our own
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def numbers(port: int) -> dict[str, float]:
    """Every sample by its name and labels, without the prefix."""
    status, body = asked(port, "/metrics")
    assert status == 200
    return {name: float(value) for name, value in re.findall(rf"^{PREFIX}_(\S+) (\S+)$", body, flags=re.MULTILINE)}


def lines(count: int, first: int = 0) -> list[Line]:
    """Documents of one passage each."""
    texts = (f'{{"id": "d{number}", "text": "some words of number {number}"}}' for number in range(first, first + count))
    return [Line("calls", number, text.encode()) for number, text in enumerate(texts, 1)]


class Held(MemoryBackend):
    """A store whose writer waits at its second block until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.reached = threading.Event(), threading.Event()

    def writer(self, index: str, spec: Any) -> Any:
        return _held(super().writer(index, spec), self)


def _held(writer: Writer, by: Held) -> Writer:
    write, blocks = writer.write, iter(range(1000))

    def slow(entries: Sequence[Entry]) -> list[Refusal]:
        if next(blocks) == 1:
            by.reached.set()
            assert by.free.wait(30)
        return write(entries)

    writer.write = slow  # type: ignore[method-assign]
    return writer


@pytest.fixture
def watch() -> Watch:
    return Watch(patience=0.2)


@pytest.fixture
def port(watch: Watch) -> Iterator[int]:
    with served(watch, HOST, 0) as bound:
        yield bound


def test_a_run_is_watched_while_it_runs(watch: Watch, port: int) -> None:
    """1,000 documents are 16 blocks of 64. The first is written, the second is held; two wait to be written, two to be encoded."""
    store = Held()
    run = threading.Thread(target=worker.ingest, args=(lines(1000), store, TinyEncoder(), "calls", Path("r.jsonl")), kwargs={"report": watch})
    run.start()
    try:
        assert store.reached.wait(30)
        until = time.monotonic() + 10
        while watch.waiting < 4 and time.monotonic() < until:
            time.sleep(0.01)
        found = numbers(port)
        assert (found["documents_total"], found["passages_total"], found["refused_total"]) == (64, 64, 0)
        assert found["lines_total"] >= 5 * 64
        assert found['queue_blocks{stage="read"}'] == found['queue_blocks{stage="encode"}'] == worker.AHEAD == 2
        time.sleep(0.3)
        assert numbers(port)["lag_seconds"] > 0.2
        assert numbers(port)["healthy"] == 0
        status, why = asked(port, "/healthz")
        assert status == 503
        assert re.fullmatch(r"no block was written for \d+ s, 4 wait and .*write works\n", why)
    finally:
        store.free.set()
        run.join()
    found = numbers(port)
    assert (found["documents_total"], found["tokens_total"]) == (1000, 5000)  # "some words of number N"
    assert found["healthy"] == 1
    assert asked(port, "/healthz") == (200, "ok\n")


def test_a_run_that_waits_for_its_source_is_healthy(watch: Watch, port: int) -> None:
    go = threading.Event()

    def slow() -> Iterator[Line]:
        yield from lines(64)
        assert go.wait(30)
        yield from lines(64, 64)

    run = threading.Thread(target=worker.ingest, args=(slow(), MemoryBackend(), TinyEncoder(), "calls", Path("r.jsonl")), kwargs={"report": watch})
    run.start()
    try:
        time.sleep(0.5)
        assert watch.lag > watch.patience
        assert asked(port, "/healthz") == (200, "ok\n")
    finally:
        go.set()
        run.join()


def test_what_is_refused_skipped_and_doubled_is_counted(watch: Watch, port: int) -> None:
    store = MemoryBackend()
    given = [*lines(5), *lines(1), Line("calls", 7, b"nonsense"), Line("calls", 8, b'{"id": ""}')]
    worker.ingest(given, store, TinyEncoder(), "calls", Path("r.jsonl"), report=watch)
    assert {name: numbers(port)[name] for name in ("documents_total", "refused_total", "duplicates_total", "lines_total")} == {
        "documents_total": 6,
        "refused_total": 2,
        "duplicates_total": 1,
        "lines_total": 8,
    }
    worker.ingest([*lines(5), *lines(1, 9)], store, TinyEncoder(), "calls", Path("r.jsonl"), report=watch)
    assert numbers(port)["skipped_total"] == 5


def test_a_counter_never_falls(watch: Watch, port: int) -> None:
    watch(Summary(passages=70))
    assert numbers(port)["passages_total"] == 70
    watch(Summary(passages=3))  # a document of 67 passages was refused when its last one came
    assert numbers(port)["passages_total"] == 70


def test_what_a_server_was_asked_for_again_is_counted(watch: Watch, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    answers = iter([ServerError("busy", 429), ServerError("down", 503), None])

    def ask() -> str:
        if error := next(answers):
            raise error
        return "done"

    assert retry.attempt(ask) == "done"
    assert numbers(port)["retries_total"] == 2


def test_stages_and_the_fill_of_batches_are_told(watch: Watch, port: int) -> None:
    assert numbers(port)["batch_fill_ratio"] == 0
    watch(Summary(tokens=60, cells=80, stages={"read": 0.5, "encode": 2.0}))
    found = numbers(port)
    assert found["batch_fill_ratio"] == 0.75
    assert found['stage_seconds_total{stage="encode"}'] == 2.0


def test_names_are_as_prometheus_wants_them_and_the_process_is_there(port: int) -> None:
    _, body = asked(port, "/metrics")
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", body, flags=re.MULTILINE))
    assert all(name.endswith("_total") for name, kind in kinds.items() if kind == "counter" and name.startswith(PREFIX))
    assert kinds[f"{PREFIX}_documents_total"] == "counter"
    assert "process_resident_memory_bytes" in kinds


def test_nothing_else_is_served(port: int) -> None:
    assert asked(port, "/")[0] == asked(port, "/../etc/passwd")[0] == 404


def test_the_encoder_says_how_full_its_batches_were(real_encoder: Any) -> None:
    """Two texts of unlike length share a batch: 2 rows of the longer one's tokens and 2 special ones each."""
    before = real_encoder.padding.cells
    short, long = (len(each.offsets) for each in real_encoder.encode(["a refund", "I want my money back right now"]))
    assert short < long
    assert real_encoder.padding.cells - before == 2 * (long + 2)


def test_a_port_that_is_taken_is_an_error(watch: Watch) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(UsageError, match=f"{taken.getsockname()[1]} .*--metrics-port"), served(watch, HOST, taken.getsockname()[1]):
            pass


# the command


def test_the_command_serves_metrics_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_search.client.encoder.load", lambda *_, **__: TinyEncoder())
    Path("calls.jsonl").write_bytes(b"\n".join(line.data for line in lines(3)))
    done = invoke("ingest", "calls.jsonl", "--url", "embedded:store", "--metrics-port", "0", "--profile")
    assert done.status == 0
    assert re.search(r"^metrics at http://127.0.0.1:\d+/metrics$", done.err, flags=re.MULTILINE)
    assert "the others wait for" in done.err


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("prometheus_client", "hybrid_search.ingest.metrics"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    Path("calls.jsonl").write_bytes(lines(1)[0].data)
    assert "hybrid-search[metrics]" in invoke("ingest", "calls.jsonl", "--url", "embedded:store", "--metrics-port", "0").error


# the table


def test_the_table_says_where_the_time_went() -> None:
    """Of 10 s of work 8 are encoding's; of the run's 8 s encoding took all."""
    summary = Summary(tokens=900, cells=1000, passages=16, seconds=8.0, stages={"read": 1.0, "encode": 8.0, "shape": 0.0, "write": 1.0})
    assert stages.table(summary).splitlines() == [
        "stage      seconds  of work   busy",
        "read           1.0      10%    12%",
        "encode         8.0      80%   100%",
        "shape          0.0       0%     0%",
        "write          1.0      10%    12%",
        "all           10.0     100%   125%  in 8.0 s",
        "112 tokens/s, 2 passages/s, batches 90% full",
        "the others wait for encode, which is busy 100% of the time",
    ]


def test_the_table_of_a_run_that_did_nothing() -> None:
    assert stages.table(Summary()).splitlines()[-1] == "0 tokens/s, 0 passages/s"
