"""Log records as JSON lines on standard error, and the traces that OpenTelemetry records."""

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

from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.cli import progress
from hybrid_search.errors import ModelError
from hybrid_search.ingest import pipeline
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs, tracing
from hybrid_search.observability.logs import Format, Level
from tests.helpers.cli import CommandResult, run_cli
from tests.helpers.tiny_encoder import TinyEncoder, fill_index

GOOD_LINE = '{"id": "a", "text": "I want my money back."}\n'
OTHER_LINE = '{"id": "a", "text": "I want all of my money back."}\n'


Capture = pytest.CaptureFixture[str]


def parse_records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_record_is_one_line_with_its_extras_and_its_exception(capsys: Capture) -> None:
    with logs.configure_logging(Format.json):
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("hybrid_search.x").warning(
                "%s went wrong", "Käse\n", extra={"document": "a", "path": Path("x")}, exc_info=True
            )
    (record,) = parse_records(capsys.readouterr().err)
    exception = record.pop("exception")
    logged_at = datetime.fromisoformat(record.pop("time"))
    assert abs(datetime.now(UTC) - logged_at) < timedelta(minutes=1)
    assert record == {
        "level": "warning",
        "logger": "hybrid_search.x",
        "message": "Käse\n went wrong",
        "document": "a",
        "path": "x",
    }
    assert exception.startswith("Traceback")
    assert exception.endswith("ValueError: two\nlines")


def refuse_constant(name: str) -> None:
    raise AssertionError(f"JSON has no {name}")


def test_what_json_cannot_hold_is_a_text(capsys: Capture) -> None:
    loop: list[Any] = []
    loop.append(loop)
    extra = {"cosine": float("nan"), "score": 0.5, "parts": {"a": [1, -float("inf")]}, "loop": loop}
    with logs.configure_logging(Format.json):
        logging.getLogger("hybrid_search.x").warning("odd", extra=extra)
    record = json.loads(capsys.readouterr().err, parse_constant=refuse_constant)
    assert {name: record[name] for name in ("message", *extra)} == {
        "message": "odd",
        "cosine": "nan",
        "score": 0.5,
        "parts": "{'a': [1, -inf]}",
        "loop": "[[...]]",
    }


@pytest.mark.parametrize(
    ("format", "level", "expected"),
    [
        (Format.json, None, ["info", "warning", "error", "theirs"]),
        (Format.json, Level.warning, ["warning", "error", "theirs"]),
        (Format.text, Level.error, ["error", "theirs"]),
        (Format.text, Level.debug, ["debug", "info", "warning", "error", "theirs"]),
    ],
)
def test_the_level_is_the_least_that_is_written(
    capsys: Capture, format: Format, level: Level | None, expected: list[str]
) -> None:
    """Client libraries never log below info: there they log queries and responses."""
    ours, theirs = logging.getLogger("hybrid_search.x"), logging.getLogger("opensearch")
    level_numbers = logging.getLevelNamesMapping()
    with logs.configure_logging(format, level):
        theirs.debug("a query")
        for name in ("debug", "info", "warning", "error"):
            ours.log(level_numbers[name.upper()], name)
        theirs.error("theirs")
    err = capsys.readouterr().err
    if format is Format.json:
        messages = [record["message"] for record in parse_records(err)]
    else:
        messages = [line.split(": ")[1] for line in err.splitlines()]
    assert messages == expected


def test_the_logging_of_a_program_is_left_as_it_was(capsys: Capture) -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    with logs.configure_logging(Format.json, Level.debug):
        assert logs.is_structured()
    assert (list(root.handlers), root.level) == before
    assert not logs.is_structured()


def test_progress_is_a_line_for_people_and_a_record_for_programs(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.progress(None) as report:
        report(Summary(documents=3, seconds=1.0))
    assert capsys.readouterr().err == "3 documents (3/s), 0 passages, 0 unchanged, 0 refused\n"
    with logs.configure_logging(Format.json), progress.progress(None) as report:
        report(Summary(documents=3, seconds=1.0))
    (record,) = parse_records(capsys.readouterr().err)
    assert (record["documents"], record["level"], record["message"]) == (
        3,
        "info",
        "3 documents (3/s), 0 passages, 0 unchanged, 0 refused",
    )


def run_ingest(*arguments: str, stdin: str) -> CommandResult:
    place = ("-", "--url", "embedded:store", "--device", "cpu")
    return run_cli(*place, *arguments, module="hybrid_search.ingest", stdin=stdin)


def test_all_of_standard_error_is_json_and_standard_output_is_what_it_was() -> None:
    lines = GOOD_LINE + OTHER_LINE + "nonsense\n"
    result = run_ingest("--log-format", "json", "--metrics-port", "0", stdin=lines)
    assert (result.status, result.json["documents"]) == (1, 2)
    log_records = parse_records(result.stderr)
    assert all({"time", "level", "logger", "message"} <= set(record) for record in log_records)
    assert [
        record["level"]
        for record in log_records
        if "'a' is at -:1 and again at -:2" in record["message"]
    ] == ["warning"]
    (last,) = [record for record in log_records if record["message"].startswith("2 documents")]
    assert (last["documents"], last["failed"]) == (2, 1)


def test_an_error_is_a_record_too() -> None:
    result = run_ingest("--log-format", "json", "--precision", "int3", stdin=GOOD_LINE)
    assert result.status == 2
    (record,) = parse_records(result.stderr)
    assert record["level"] == "error"
    assert record["message"].startswith("precision 'int3' is not one of")


# traces


@pytest.fixture
def span_exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("hybrid_search"))
    yield exporter
    provider.shutdown()


def test_each_stage_of_each_block_has_a_span_within_that_of_the_run(
    span_exporter: InMemorySpanExporter,
) -> None:
    """70 documents of one passage are two blocks; the third read finds the end."""
    fill_index(MemoryBackend(), [{"id": str(number), "text": "some words"} for number in range(70)])
    spans = span_exporter.get_finished_spans()
    names = sorted(span.name for span in spans)
    assert names == [
        "ingest",
        *["ingest.encode"] * 2,
        *["ingest.read"] * 3,
        *["ingest.shape"] * 2,
        *["ingest.write"] * 2,
    ]
    (run_span,) = [span for span in spans if span.name == "ingest"]
    assert {span.parent.span_id for span in spans if span.parent} == {run_span.context.span_id}
    assert all(span.parent for span in spans if span is not run_span)


def test_an_error_is_seen_in_the_span_and_raised(span_exporter: InMemorySpanExporter) -> None:
    class Broken(TinyEncoder):
        def encode(self, _: Any) -> Any:
            raise RuntimeError("no more memory")

    with pytest.raises(ModelError, match="no more memory"):
        pipeline.ingest(
            [SourceLine("x", 1, GOOD_LINE.encode())],
            MemoryBackend(),
            Broken(),
            IngestOptions("calls", Path("r.jsonl")),
        )
    (encode_span,) = [
        span for span in span_exporter.get_finished_spans() if span.name == "ingest.encode"
    ]
    assert encode_span.status.status_code is trace.StatusCode.ERROR


def test_without_the_api_nothing_is_done() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from hybrid_search.observability import tracing\n"
        "items = iter([1])\n"
        "assert tracing.trace_iterations('x', items) is items\n"
        "assert tracing.trace_block('x') is tracing.trace_block('y')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
