"""Standard streams that are full or closed: one error or none, the right status, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from hybrid_search.cli.app import app

COMMANDS: dict[str, list[str]] = {
    "version": ["--version"],
    "help": ["query", "--help"],
    "query": ["query", "refund"],
    "query as JSON": ["query", "refund", "--json"],
    "best spans": ["best-spans", "refund", "--text", "I want a refund."],
    "verify": ["verify", "--sample", "0", "--json"],
    "verify for people": ["verify", "--sample", "0"],
    "ingest": ["ingest", "--url", "embedded:here", "calls.jsonl"],
    "setup": ["setup", "--url", "embedded:here", "--json"],
    "doctor": ["doctor"],
}


@pytest.fixture(autouse=True)
def _use_the_sample(sample_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", sample_url)
    Path("calls.jsonl").write_text(json.dumps({"id": "a", "text": "I want a refund."}))


def open_full_device() -> TextIO:
    return Path("/dev/full").open("w")


def open_pipe_without_reader() -> TextIO:
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def run_in_process(arguments: list[str]) -> int | str | None:
    """Run the program with the streams of this process, and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    return ended.value.code


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_standard_output_is_one_error(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_full_device() as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run_in_process(COMMANDS[command]) == 2
    errors = capsys.readouterr().err
    assert errors.endswith(
        "error: standard output cannot be written (No space left on device): "
        "free space, or send it somewhere else, and run the same command again\n"
    )
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", COMMANDS)
def test_a_standard_output_without_a_reader_ends_the_command_quietly(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_pipe_without_reader() as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run_in_process(COMMANDS[command]) == 141
    assert "error" not in capsys.readouterr().err.lower()


def test_no_standard_output_at_all_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # what Python does for >&- in a shell
    assert run_in_process(COMMANDS["query"]) == 2
    assert "standard output cannot be written (Bad file descriptor)" in capsys.readouterr().err


@pytest.mark.parametrize("open_stream", [open_full_device, open_pipe_without_reader, lambda: None])
def test_an_ingest_goes_on_when_standard_error_takes_nothing(
    open_stream: Callable[[], TextIO | None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = open_stream()
    monkeypatch.setattr(sys, "stderr", stream)
    status = run_in_process(COMMANDS["ingest"])
    summary = json.loads(capsys.readouterr().out)
    if stream:
        stream.close()
    assert (status, summary["documents"]) == (0, 1)


def test_streams_that_are_closed_or_full_in_a_real_process_leave_no_trace() -> None:
    """Python itself complains at its end about what it could not write, with status 120."""
    program = f'"{sys.executable}" -m hybrid_search'
    for redirections, status in (
        (">/dev/full 2>/dev/full", 2),
        (">&- 2>&-", 2),
        ("--no-such-option 2>/dev/full", 2),
        (">/dev/full", 2),
    ):
        process = subprocess.run(
            ["sh", "-c", f"{program} --version {redirections}"], capture_output=True, check=False
        )
        assert process.returncode == status
        assert b"Traceback" not in process.stderr
        assert b"Exception ignored" not in process.stderr
