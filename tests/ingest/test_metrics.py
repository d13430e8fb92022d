"""Watching a run by its metrics over HTTP."""

from __future__ import annotations

import re
import socket
import struct
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends.base import Writer
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.types import Refusal
from hybrid_search.errors import ServerError, UsageError
from hybrid_search.ingest import pipeline
from hybrid_search.ingest.metrics import PREFIX, RunMetrics, serve_metrics
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text.types import Entry
from tests.helpers.cli import invoke_cli
from tests.helpers.tiny_encoder import TinyEncoder

HOST = "127.0.0.1"


def fetch(port: int) -> str:
    """Return the page of the metrics."""
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=10) as response:
        return str(response.read().decode())


def read_samples(port: int) -> dict[str, float]:
    """Return every sample by its name and labels, without the prefix."""
    return {
        name: float(value)
        for name, value in re.findall(rf"^{PREFIX}_(\S+) (\S+)$", fetch(port), flags=re.MULTILINE)
    }


def make_lines(count: int, first: int = 0) -> list[SourceLine]:
    """Return lines of documents with one passage each."""
    texts = (
        f'{{"id": "d{number}", "text": "some words of number {number}"}}'
        for number in range(first, first + count)
    )
    return [SourceLine("calls", number, text.encode()) for number, text in enumerate(texts, 1)]


class BlockingBackend(MemoryBackend):
    """A store whose writer waits at its second block until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.released, self.second_block_reached = threading.Event(), threading.Event()

    def writer(self, index: str, spec: Any) -> Any:
        return _block_second_write(super().writer(index, spec), self)


def _block_second_write(writer: Writer, backend: BlockingBackend) -> Writer:
    write, blocks = writer.write, iter(range(1000))

    def slow_write(entries: Sequence[Entry]) -> list[Refusal]:
        if next(blocks) == 1:
            backend.second_block_reached.set()
            assert backend.released.wait(30)
        return write(entries)

    writer.write = slow_write  # type: ignore[method-assign]
    return writer


@pytest.fixture
def watch() -> RunMetrics:
    return RunMetrics()


@pytest.fixture
def port(watch: RunMetrics) -> Iterator[int]:
    with serve_metrics(watch, HOST, 0) as bound_port:
        yield bound_port


def test_a_run_is_watched_while_it_runs(watch: RunMetrics, port: int) -> None:
    """1,000 documents are 16 blocks of 64. The first is written, the second is held; two wait to be
    written, and two to be encoded.
    """
    store = BlockingBackend()
    run = threading.Thread(
        target=pipeline.ingest,
        args=(
            make_lines(1000),
            store,
            TinyEncoder(),
            IngestOptions("calls", Path("r.jsonl"), report=watch),
        ),
    )
    run.start()
    try:
        assert store.second_block_reached.wait(30)
        deadline = time.monotonic() + 10
        samples = read_samples(port)
        while samples["lines_total"] < 6 * 64 and time.monotonic() < deadline:
            time.sleep(0.01)
            samples = read_samples(port)
        assert (
            samples["documents_total"],
            samples["passages_total"],
            samples["refused_total"],
        ) == (64, 64, 0)
        assert samples["lines_total"] >= 6 * 64
        time.sleep(0.3)
        assert read_samples(port)["lag_seconds"] > 0.2
    finally:
        store.released.set()
        run.join()
    samples = read_samples(port)
    # "some words of number N"
    assert (samples["documents_total"], samples["tokens_total"]) == (1000, 5000)


def test_what_is_refused_skipped_and_doubled_is_counted(watch: RunMetrics, port: int) -> None:
    store = MemoryBackend()
    source_lines = [
        *make_lines(5),
        *make_lines(1),
        SourceLine("calls", 7, b"nonsense"),
        SourceLine("calls", 8, b'{"id": ""}'),
    ]
    pipeline.ingest(
        source_lines, store, TinyEncoder(), IngestOptions("calls", Path("r.jsonl"), report=watch)
    )
    assert {
        name: read_samples(port)[name]
        for name in ("documents_total", "refused_total", "duplicates_total", "lines_total")
    } == {"documents_total": 6, "refused_total": 2, "duplicates_total": 1, "lines_total": 8}
    pipeline.ingest(
        [*make_lines(5), *make_lines(1, 9)],
        store,
        TinyEncoder(),
        IngestOptions("calls", Path("r.jsonl"), report=watch),
    )
    assert read_samples(port)["skipped_total"] == 5


def test_counters_sum_up_the_files_of_a_watched_folder(watch: RunMetrics, port: int) -> None:
    """Each file has a summary of its own."""
    watch(Summary(documents=70, stages={"read": 0.5}))
    watch(Summary(documents=3, stages={"read": 0.25}))
    samples = read_samples(port)
    assert samples["documents_total"] == 73
    assert samples['stage_seconds_total{stage="read"}'] == 0.75


def test_what_a_server_was_asked_for_again_is_counted(
    watch: RunMetrics, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    answers = iter([ServerError("busy", 429), ServerError("down", 503), None])

    def send_request() -> str:
        if error := next(answers):
            raise error
        return "done"

    assert retry.attempt(send_request, retry.REQUEST) == "done"
    assert read_samples(port)["retries_total"] == 2


def test_the_seconds_of_stages_are_told(watch: RunMetrics, port: int) -> None:
    watch(Summary(stages={"read": 0.5, "encode": 2.0}))
    assert read_samples(port)['stage_seconds_total{stage="encode"}'] == 2.0


def test_names_are_as_prometheus_wants_them_and_the_process_is_there(port: int) -> None:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", fetch(port), flags=re.MULTILINE))
    assert all(
        name.endswith("_total")
        for name, kind in kinds.items()
        if kind == "counter" and name.startswith(PREFIX)
    )
    assert kinds[f"{PREFIX}_documents_total"] == "counter"
    assert "process_resident_memory_bytes" in kinds


def test_a_port_that_is_taken_is_an_error(watch: RunMetrics) -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        with (
            pytest.raises(UsageError, match=f"{listener.getsockname()[1]} .*--metrics-port"),
            serve_metrics(watch, HOST, listener.getsockname()[1]),
        ):
            pass


# the command


def test_the_command_serves_metrics_and_says_where(tmp_path: Path, tiny_encoder: None) -> None:
    Path("calls.jsonl").write_bytes(b"\n".join(line.data for line in make_lines(3)))
    result = invoke_cli("ingest", "calls.jsonl", "--url", "embedded:store", "--metrics-port", "0")
    assert result.status == 0
    assert re.search(
        r"^metrics at http://127.0.0.1:\d+/metrics$", result.stderr, flags=re.MULTILINE
    )


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        module
        for module in sys.modules
        if module.startswith(("prometheus_client", "hybrid_search.ingest.metrics"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    Path("calls.jsonl").write_bytes(make_lines(1)[0].data)
    assert (
        "hybrid-span-search[metrics]"
        in invoke_cli(
            "ingest", "calls.jsonl", "--url", "embedded:store", "--metrics-port", "0"
        ).error
    )


def test_a_reader_of_the_metrics_that_leaves_early_prints_nothing(
    port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            linger = struct.pack("ii", 1, 0)  # the connection is reset when it is closed
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    assert fetch(port)
    assert capfd.readouterr().err == ""
