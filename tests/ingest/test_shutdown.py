"""Stopping: an ingest reads no more, finishes what it has read, says so, and can go on later."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.errors import IndexMissingError
from hybrid_search.ingest.prefetch import read_until_stopped
from hybrid_search.ingest.run import stop_on_signals
from tests.helpers.ingest_process import start_ingest

pytestmark = pytest.mark.faults

URL = "embedded:store"
TIMEOUT = 240


def make_line(number: int) -> str:
    return json.dumps({"id": f"d{number}", "text": f"word{number} of a short document"}) + "\n"


def wait_for_summary(process: subprocess.Popen[str], status: int = 0) -> dict[str, Any]:
    stdout, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == status, err
    assert "Traceback" not in err
    run_summary: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return run_summary


def count_documents() -> int:
    with closing(open_backend(URL)) as backend:
        try:
            return backend.describe_index("calls").documents
        except IndexMissingError:  # it is just being made
            return 0


def wait_until(condition: Any) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_what_came_on_standard_input_is_committed_though_more_is_waited_for(
    kind: signal.Signals,
) -> None:
    process = start_ingest("--url", URL, "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("".join(map(make_line, range(3))) + '{"id": "half')
    process.stdin.flush()
    wait_until(Path("store/calls.index/head.json").exists)
    time.sleep(1.0)
    process.send_signal(kind)
    assert process.wait(TIMEOUT) == 0  # with standard input still open
    stdout, err = process.communicate()
    run_summary = json.loads(stdout.splitlines()[-1])
    assert (
        run_summary["read"],
        run_summary["documents"],
        run_summary["failed"],
        run_summary["stopped"],
    ) == (3, 3, 0, True)
    assert (
        err.splitlines()[0]
        == "stopping: what was read is being finished; a second signal ends at once"
    )
    assert count_documents() == 3


def test_a_long_file_is_left_early_and_the_same_command_does_the_rest() -> None:
    Path("calls.jsonl").write_text("not JSON\n" + "".join(map(make_line, range(5000))))
    process = start_ingest("--url", URL, "calls.jsonl", env={"SLOW": "0.05"})
    wait_until(lambda: Path("store/calls.index/head.json").exists() and count_documents() > 0)
    process.send_signal(signal.SIGTERM)
    first = wait_for_summary(process, 1)  # for one line was refused
    assert first["stopped"]
    assert 0 < first["documents"] == first["read"] - 1 == count_documents() < 5000
    again = wait_for_summary(start_ingest("--url", URL, "calls.jsonl"), 1)
    assert (again["skipped"], again["documents"], again["failed"], again["stopped"]) == (
        first["documents"],
        5000 - first["documents"],
        1,
        False,
    )


def test_a_second_signal_ends_at_once_and_what_was_committed_stays() -> None:
    Path("calls.jsonl").write_text("".join(map(make_line, range(1000))))
    process = start_ingest("--url", URL, "calls.jsonl", env={"SLOW": "30"})
    wait_until(Path("store/calls.index/head.json").exists)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert process.poll() is None  # 16 passages are being encoded
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.communicate()
    assert wait_for_summary(start_ingest("--url", URL, "calls.jsonl"))["documents"] == 1000


def test_an_error_does_not_wait_for_standard_input() -> None:
    process = start_ingest(
        "--url", URL, "-", stdin=subprocess.PIPE, env={"ENCODER_FAILS_AFTER": "0"}
    )
    assert process.stdin is not None
    process.stdin.write("".join(map(make_line, range(60))))
    process.stdin.flush()
    assert process.wait(TIMEOUT) == 2  # with standard input still open
    _, err = process.communicate()
    assert err.splitlines()[-1].startswith(
        "error: the encoder tiny fails at every text: RuntimeError: the device is gone."
    )


def test_the_handlers_are_as_before_behind_the_block() -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)]
    with stop_on_signals() as stopped:
        signal.raise_signal(signal.SIGINT)
        assert stopped.is_set()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)] == before


# The event alone


def test_an_error_of_the_source_comes_behind_its_items() -> None:
    def yield_then_fail() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    items: list[int] = []
    with pytest.raises(OSError, match="gone"):
        items.extend(read_until_stopped(threading.Event(), yield_then_fail()))
    assert items == [1]


def test_a_reader_that_goes_away_ends_the_source() -> None:
    closed = threading.Event()

    def yield_numbers() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.set()

    items = read_until_stopped(threading.Event(), yield_numbers())
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined] # a generator
    assert closed.wait(TIMEOUT)
