"""Tables with a turn a row: calls by `rows="turn"`, and no row lost without it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.errors import IndexStoreError
from hybrid_search.ingest.sources import files, turn_rows
from hybrid_search.ingest.sources.read_options import ReadOptions
from hybrid_search.ingest.types import SourceLine
from tests.helpers.cli import invoke_cli

TURNS = ReadOptions({"id": "call_id"}, "turn")
TABLE = """call_id,queue,speaker,start,end,text,score
c-1,returns,agent,0.5,1.25,Hello.,
c-2,billing,customer,0,2,A bill.,3
c-1,returns,customer,00:01:02,,I want a refund.,4
"""
CALLS = [
    {
        "queue": "returns",
        "id": "c-1",
        "turns": [
            {"text": "Hello.", "speaker": "agent", "start_ms": 500, "end_ms": 1250},
            {"score": "4", "text": "I want a refund.", "speaker": "customer", "start_ms": 62_000},
        ],
    },
    {
        "queue": "billing",
        "id": "c-2",
        "turns": [
            {"score": "3", "text": "A bill.", "speaker": "customer", "start_ms": 0, "end_ms": 2000}
        ],
    },
]


def write(text: str, name: str = "u.csv") -> str:
    Path(name).write_text(text)
    return name


def read(source: str, options: ReadOptions = TURNS) -> list[SourceLine]:
    return list(files.read([source], options))


def read_calls(source: str, options: ReadOptions = TURNS) -> list[dict[str, Any]]:
    lines = read(source, options)
    assert [line.fault for line in lines] == [None] * len(lines)
    return [json.loads(line.data) for line in lines]


def test_rows_of_one_id_are_a_call_wherever_they_stand() -> None:
    lines = read(write(TABLE))
    assert [json.loads(line.data) for line in lines] == CALLS
    assert [line.number for line in lines] == [2, 3]  # of the first row of each


def test_a_column_is_the_calls_or_the_turns_in_the_whole_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A call of one row has nothing that differs, and still no other metadata than the others."""
    first, second = read_calls(write(TABLE))
    assert first.keys() == second.keys() == {"id", "queue", "turns"}
    assert "differ within a call: score. Conditions" in capsys.readouterr().err
    read_calls(write(TABLE.replace(",4", ",")))
    assert capsys.readouterr().err == ""


def test_lines_of_json_are_turns_of_calls_too() -> None:
    rows = [
        {"call": {"id": 7}, "role": "agent", "said": "Hello.", "from_ms": 100},
        {"call": {"id": 7}, "role": "customer", "said": "A refund.", "from_ms": 900},
    ]
    source = write("\n".join(map(json.dumps, rows)), "u.jsonl")
    columns = {"id": "call.id", "text": "said", "speaker": "role", "start": "from_ms"}
    assert read_calls(source, ReadOptions(columns, "turn")) == [
        {
            "id": "7",
            "turns": [
                {"text": "Hello.", "speaker": "agent", "start_ms": 100},
                {"text": "A refund.", "speaker": "customer", "start_ms": 900},
            ],
        }
    ]


def test_turns_stand_as_they_start_if_all_say_when_else_as_their_rows_do() -> None:
    numbers = [number * 7 % 50 for number in range(50)]  # each once, as 7 and 50 share no divisor
    rows = [f"c,{number},word {number}\n" for number in numbers]
    source = write("id,start,text\n" + "".join(rows))
    (call,) = read_calls(source, ReadOptions(rows="turn"))
    assert [turn["text"] for turn in call["turns"]] == [f"word {number}" for number in range(50)]
    (call,) = read_calls(
        write("id,start,text\nc,2,two\nc,,none\nc,1,one\n"), ReadOptions(rows="turn")
    )
    assert [turn["text"] for turn in call["turns"]] == ["two", "none", "one"]


def test_instants_count_from_the_first_turn_of_their_call() -> None:
    rows = [
        "a,2026-03-01 09:00:05,2026-03-01 09:00:07,second",
        "a,2026-03-01T10:00:00+01:00,,first",
        "b,2026-03-02T00:00:00Z,,other",
    ]
    source = write("id,start,end,text\n" + "\n".join(rows) + "\n")
    first, second = read_calls(source, ReadOptions(rows="turn"))
    assert first["turns"] == [
        {"text": "first", "start_ms": 0},
        {"text": "second", "start_ms": 5000, "end_ms": 7000},
    ]
    assert second["turns"] == [{"text": "other", "start_ms": 0}]


def test_bad_rows_stand_between_the_calls_by_their_lines_so_that_a_checkpoint_holds() -> None:
    source = write("id,start,text\na,1,x\nb\nc,soon,y\n,1,z\nd,2,w\na,3,v\n")
    lines = read(source, ReadOptions(rows="turn"))
    assert [(line.number, line.fault) for line in lines] == [
        (2, None),
        (3, "the row has 1 cells, but the header has 3"),
        (4, "a time is neither seconds, nor milliseconds in a column *_ms, HH:MM:SS or ISO 8601"),
        (5, "the row has no id of a call"),
        (6, None),
    ]


def test_a_call_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_rows, "MAX_LINE_BYTES", 150)
    first, second = read(write(TABLE))
    assert first.fault == "the rows of the call have over 150 bytes"
    assert second.fault is None


def test_a_full_temporary_folder_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    connect_to_file = sqlite3.connect

    def connect_to_small_file(name: str) -> Any:
        connection = connect_to_file(name)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_to_small_file)
    rows = "".join(f"c-{number},word\n" for number in range(6_000))
    with pytest.raises(IndexStoreError, match=r"temporary folder: database or disk is full\. Free"):
        read(write("id,text\n" + rows), ReadOptions(rows="turn"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_repeats_ids_is_refused_before_anything_is_written(kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [str(number) for number in range(500)] + ["3"]
    texts = [f"word {number}" for number in range(501)]
    if kind == "csv":
        rows = "".join(f"{call},{text}\n" for call, text in zip(ids, texts, strict=True))
        source, places = write("id,text\n" + rows), "rows 5 and 502"
    else:
        pq.write_table(pa.table({"id": ids, "text": texts}), "u.parquet")
        source, places = "u.parquet", "rows 4 and 501"
    result = invoke_cli("ingest", source, "--url", "embedded:store")
    assert (result.status, result.json["documents"], result.json["failed"]) == (1, 0, 1)
    assert (
        f"refused: 1 x {places} of the table have the same id, and nothing of it was taken: "
        "give --rows turn if each row is a turn of the call that its id names" in result.stderr
    )


def test_rows_that_are_equal_are_no_loss() -> None:
    source = write("id,text\na,hello\na,hello\nb,bye\n")
    result = invoke_cli("ingest", source, "--url", "embedded:store")
    assert (result.status, result.json["duplicates"], result.json["replaced"]) == (0, 1, 0)


def test_calls_of_turns_go_in_by_the_command_and_a_span_has_its_speaker_and_time() -> None:
    source = write(TABLE)
    options = ("--columns", "id=call_id", "--rows", "turn", "--url", "embedded:store")
    result = invoke_cli("ingest", source, *options)
    assert (result.status, result.json["documents"], result.json["failed"]) == (0, 2, 0)
    with connect("embedded:store") as client:
        hit = client.query("I want a refund", where={"queue": "returns"}).hits[0]
    assert (hit.id, hit.spans[0].speaker) == ("c-1", "customer")
    again = invoke_cli("ingest", source, *options)
    assert (again.status, again.json["skipped"]) == (0, 2)


def test_the_kind_of_rows_is_one_of_two() -> None:
    error = invoke_cli("ingest", write(TABLE), "--rows", "turns", "--url", "embedded:store").error
    assert error == "rows is 'turns': it is one of document, turn"
