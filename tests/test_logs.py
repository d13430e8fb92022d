"""Standard error for programs: each line one JSON object; and the spans of OpenTelemetry, where somebody records them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hybrid_search import logs, progress, telemetry
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.errors import ModelError
from hybrid_search.ingest import worker
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.logs import Format, Level
from tests.program import Ran, run
from tests.tiny import TinyEncoder, fill

GOOD = '{"id": "a", "text": "I want my money back."}\n'


Capture = pytest.CaptureFixture[str]


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_record_is_one_line_with_its_extras_and_its_exception(capsys: Capture) -> None:
    with logs.configured(Format.json):
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("hybrid_search.x").warning("%s went wrong", "Käse\n", extra={"document": "a", "path": Path("x")}, exc_info=True)
    (found,) = records(capsys.readouterr().err)
    exception = found.pop("exception")
    at = datetime.fromisoformat(found.pop("time"))
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
    assert found == {"level": "warning", "logger": "hybrid_search.x", "message": "Käse\n went wrong", "document": "a", "path": "x"}
    assert exception.startswith("Traceback")
    assert exception.endswith("ValueError: two\nlines")


@pytest.mark.parametrize(
    ("format", "level", "expected"),
    [
        (Format.json, None, ["info", "warning", "error", "theirs"]),
        (Format.json, Level.warning, ["warning", "error", "theirs"]),
        (Format.text, Level.error, ["error", "theirs"]),
        (Format.text, Level.debug, ["debug", "info", "warning", "error", "theirs"]),
    ],
)
def test_the_level_is_the_least_that_is_written(capsys: Capture, format: Format, level: Level | None, expected: list[str]) -> None:
    """Of client libraries nothing below info: they log queries and answers."""
    ours, theirs = logging.getLogger("hybrid_search.x"), logging.getLogger("opensearch")
    with logs.configured(format, level):
        theirs.debug("a query")
        for name in ("debug", "info", "warning", "error"):
            ours.log(logging.getLevelNamesMapping()[name.upper()], name)
        theirs.error("theirs")
    err = capsys.readouterr().err
    said = [each["message"] for each in records(err)] if format is Format.json else [line.split(": ")[1] for line in err.splitlines()]
    assert said == expected


def test_the_logging_of_a_program_is_left_as_it_was(capsys: Capture) -> None:
    root, before = logging.getLogger(), (list(logging.getLogger().handlers), logging.getLogger().level)
    with logs.configured(Format.json, Level.debug):
        assert logs.structured()
    assert (list(root.handlers), root.level) == before
    assert not logs.structured()


def test_progress_is_a_line_for_people_and_a_record_for_programs(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.progress(None) as report:
        report(Summary(documents=3, seconds=1.0))
    assert capsys.readouterr().err == "3 documents (3/s), 0 passages, 0 unchanged, 0 refused\n"
    with logs.configured(Format.json), progress.progress(None) as report:
        report(Summary(documents=3, seconds=1.0))
    (found,) = records(capsys.readouterr().err)
    assert (found["documents"], found["level"], found["message"]) == (3, "info", "3 documents (3/s), 0 passages, 0 unchanged, 0 refused")


def ingest(*arguments: str, given: str) -> Ran:
    return run("-", "--url", "embedded:store", "--device", "cpu", *arguments, module="hybrid_search.ingest", given=given)


def test_all_of_standard_error_is_json_and_standard_output_is_what_it_was() -> None:
    done = ingest("--log-format", "json", "--metrics-port", "0", "--profile", given=GOOD + GOOD + "nonsense\n")
    assert (done.status, done.json["documents"]) == (1, 2)
    found = records(done.err)
    assert all({"time", "level", "logger", "message"} <= set(each) for each in found)
    assert [each["level"] for each in found if "'a' is at -:1 and again at -:2" in each["message"]] == ["warning"]
    (last,) = [each for each in found if each["message"].startswith("2 documents")]
    assert (last["documents"], last["failed"]) == (2, 1)


def test_an_error_is_a_record_too() -> None:
    done = ingest("--log-format", "json", "--precision", "int3", given=GOOD)
    assert done.status == 2
    (found,) = records(done.err)
    assert found["level"] == "error"
    assert found["message"].startswith("precision 'int3' is not one of")


def test_a_format_that_is_none_is_an_error() -> None:
    assert ingest("--log-format", "xml", given=GOOD).status == 2


# spans


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_tracer", provider.get_tracer("hybrid_search"))
    yield exporter
    provider.shutdown()


def test_each_stage_of_each_block_has_a_span_within_that_of_the_run(recorded: InMemorySpanExporter) -> None:
    """70 documents of one passage are two blocks. Of reading a third span is that of coming to the end."""
    fill(MemoryBackend(), [{"id": str(number), "text": "some words"} for number in range(70)])
    spans = recorded.get_finished_spans()
    names = sorted(each.name for each in spans)
    assert names == ["ingest", *["ingest.encode"] * 2, *["ingest.read"] * 3, *["ingest.shape"] * 2, *["ingest.write"] * 2]
    (whole,) = [each for each in spans if each.name == "ingest"]
    assert {each.parent.span_id for each in spans if each.parent} == {whole.context.span_id}
    assert all(each.parent for each in spans if each is not whole)


def test_an_error_is_seen_in_the_span_and_raised(recorded: InMemorySpanExporter) -> None:
    class Broken(TinyEncoder):
        def encode(self, _: Any) -> Any:
            raise RuntimeError("no more memory")

    with pytest.raises(ModelError, match="no more memory"):
        worker.ingest([Line("x", 1, GOOD.encode())], MemoryBackend(), Broken(), "calls", Path("r.jsonl"))
    (encode,) = [each for each in recorded.get_finished_spans() if each.name == "ingest.encode"]
    assert encode.status.status_code is trace.StatusCode.ERROR


def test_without_the_api_nothing_is_done() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from hybrid_search import telemetry\n"
        "items = iter([1])\n"
        "assert telemetry.spans('x', items) is items\n"
        "assert telemetry.span('x') is telemetry.span('y')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
