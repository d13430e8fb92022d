"""Keys of one's own: `columns` with dotted paths, for JSON, tables and turns, and proposals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid_search.errors import InputError
from hybrid_search.ingest import column_names
from hybrid_search.ingest.sources import files, times
from hybrid_search.ingest.sources.read_options import ReadOptions, parse_columns
from tests.helpers.cli import invoke_cli

TICKET = {
    "ticket": {"id": 17, "queue": "returns"},
    "id": "row-9",
    "body": {"plain": "I want my money back."},
    "sector": "shop",
}
CALL = {
    "meta": {"call": {"id": "c-1"}},
    "text": "the whole transcript",
    "segments": [
        {"who": {"role": "agent"}, "said": {"text": "Hello."}, "t0": 0.5, "t1": 1.25, "x": 1},
        {"who": {"role": "customer"}, "said": {"text": "A refund!"}, "t0": "00:01:02.5"},
    ],
}
CALL_COLUMNS = "id=meta.call.id,turns=segments,text=said.text,speaker=who.role,start=t0,end=t1"


def write(*documents: Any, name: str = "calls.jsonl") -> str:
    Path(name).write_text("\n".join(map(json.dumps, documents)))
    return name


def read(source: str, columns: str = "", **options: Any) -> list[Any]:
    """Return the documents of a source, and the faults of what is none."""
    lines = files.read([source], ReadOptions(parse_columns(columns), **options))
    return [line.fault or json.loads(line.data) for line in lines]


@pytest.mark.parametrize("is_indented", [False, True])
def test_dotted_keys_of_json_give_the_keys_of_documents(is_indented: bool) -> None:
    source = write(TICKET)
    if is_indented:
        Path(source).write_text(json.dumps([TICKET], indent=2))
    assert read(source, "id=ticket.id,text=body.plain,industry=sector") == [
        {
            "id": 17,
            "text": "I want my money back.",
            "industry": "shop",
            "ticket": {"queue": "returns"},
            "source_id": "row-9",
        }
    ]


CALL_DOCUMENT = {
    "id": "c-1",
    "source_text": "the whole transcript",
    "turns": [
        {"speaker": "agent", "text": "Hello.", "start_ms": 500, "end_ms": 1250, "x": 1},
        {"speaker": "customer", "text": "A refund!", "start_ms": 62_500},
    ],
}


def test_keys_below_turns_are_named_too() -> None:
    assert read(write(CALL), CALL_COLUMNS) == [CALL_DOCUMENT]


def test_parquet_has_dotted_columns_and_turns_as_json_has() -> None:
    segments = [{"who": {"role": "agent"}, "said": {"text": "Hello."}, "t0": 0.5}]
    table = pa.table({"meta": [{"id": "c-1"}], "segments": [segments]})
    pq.write_table(table, "calls.parquet")
    columns = "id=meta.id,turns=segments,text=said.text,speaker=who.role,start=t0"
    assert read("calls.parquet", columns) == [
        {"id": "c-1", "turns": [{"speaker": "agent", "text": "Hello.", "start_ms": 500}]}
    ]


def test_repeated_ids_below_a_column_are_found_too() -> None:
    pq.write_table(pa.table({"meta": [{"id": 1}, {"id": 1}], "text": ["x", "y"]}), "calls.parquet")
    (fault,) = read("calls.parquet", "id=meta.id")
    assert fault.startswith("rows 1 and 2 of the table have the same id")


def test_a_speaker_of_a_text_makes_one_turn_of_it() -> None:
    source = write({"id": "a", "text": "Hello.", "role": "agent", "at_ms": 1500})
    assert read(source, "speaker=role,start=at_ms") == [
        {"id": "a", "turns": [{"text": "Hello.", "speaker": "agent", "start_ms": 1500}]}
    ]


def test_turns_in_a_cell_of_a_table_are_json() -> None:
    turns = json.dumps([{"speaker": "agent", "text": "Hello."}]).replace('"', '""')
    Path("t.csv").write_text(f'id,turns\na,"{turns}"\nb,no turns\n')
    good, bad = read("t.csv")
    assert good == {"id": "a", "turns": [{"speaker": "agent", "text": "Hello."}]}
    assert bad == "turns are a text, and not a list of objects in JSON"


def test_a_key_that_is_missing_is_named_with_those_that_look_right() -> None:
    (fault,) = read(write({"call_id": "a", "transcript": "Hello."}), "id=callid,text=transcript")
    assert fault == (
        "no key 'callid' for the id: name one that is there, "
        "as in --columns id=call_id,text=transcript"
    )


@pytest.mark.parametrize(
    ("value", "name", "milliseconds"),
    [
        (1.25, "start", 1250),
        ("1.25", "start", 1250),
        ("1,25", "start", 1250),
        (2, "start", 2000),
        (1200, "start_ms", 1200),
        ("1200", "begin_MS", 1200),
        (1200, "beginOffsetMillis", 1200),
        (1200, "offset.milliseconds", 1200),
        (1200, "startMs", 1200),
        (30, "items", 30_000),
        ("01:02", "start", 62_000),
        ("1:00:02,5", "start", 3_602_500),
        ("00:00:01.250", "start_ms", 1250),
        ("1970-01-02T00:00:01Z", "start", 86_401_000),
        ("1970-01-02 01:00:01.5+01:00", "start_ms", 86_401_500),
        ("2026", "start", 2_026_000),
    ],
)
def test_times_are_seconds_or_milliseconds_by_name_or_clocks(
    value: Any, name: str, milliseconds: int
) -> None:
    assert times.to_milliseconds(value, name) == milliseconds


@pytest.mark.parametrize("value", ["soon", [1], "nan", "inf", {}, "2026-03-01"])
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="a time is neither seconds, nor milliseconds in"):
        times.to_milliseconds(value, "start")


@pytest.mark.parametrize(
    ("fields", "option"),
    [
        ({"Call ID": "a", "Transcript": "x"}, '--columns "id=Call ID,text=Transcript"'),
        ({"agentId": 7, "callId": 1, "body": "x"}, "--columns id=callId,text=body"),
        ({"ticket": {"id": 1}, "description": "x"}, "--columns id=ticket.id,text=description"),
        (
            {"id": 1, "utterances": [{"role": "agent", "content": "x", "start": 1, "end": 2}]},
            "--columns turns=utterances,text=content,speaker=role",
        ),
        ({"x": "a", "y": "b"}, "--columns id=call_id,text=body"),  # an example
    ],
)
def test_the_keys_that_look_right_are_proposed(fields: dict[str, Any], option: str) -> None:
    assert column_names.propose_columns(fields) == option


def test_a_header_with_a_quote_or_comma_is_proposed_as_a_shell_takes_it() -> None:
    option = column_names.propose_for_header(["Call ID", "Body, full"])
    assert option == """--columns 'id=Call ID,"text=Body, full"'"""
    value = option.removeprefix("--columns ").strip("'")
    assert parse_columns(value) == {"id": "Call ID", "text": "Body, full"}


def test_the_proposed_command_ingests_what_was_refused_before() -> None:
    Path("t.csv").write_text("Call ID,Transcript\na,I want a refund\n")
    refused = invoke_cli("ingest", "t.csv", "--url", "embedded:store")
    assert refused.status == 1
    assert 'give --columns "id=Call ID,text=Transcript" (first at t.csv:1)' in refused.stderr
    columns = "id=Call ID,text=Transcript"
    taken = invoke_cli("ingest", "t.csv", "--columns", columns, "--url", "embedded:store")
    assert (taken.status, taken.json["documents"]) == (0, 1)


def test_lines_of_speakers_become_turns_by_the_option() -> None:
    text = "Agent: Hello.\nCustomer: A refund, please.\nAgent: Sure."
    source = write({"id": "a", "text": text})
    assert read(source) == [{"id": "a", "text": text}]
    (document,) = read(source, split_speakers=True)
    assert [(turn["speaker"], turn["text"]) for turn in document["turns"]] == [
        ("Agent", "Hello."),
        ("Customer", "A refund, please."),
        ("Agent", "Sure."),
    ]
