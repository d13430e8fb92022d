"""Documents that a program has: dicts of harmless types, Arrow tables, data frames."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hybrid_search.client import Client
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.sources.python_objects import put_in_python, read_objects
from hybrid_search.ingest.sources.read_options import AS_IS, ReadOptions
from hybrid_search.ingest.summary import Reason, Summary

UUID = uuid.UUID(int=1)
AT = dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)

VALUES: dict[str, tuple[Any, Any]] = {
    "a time with a zone": (AT, "2026-03-01T09:30:00+00:00"),
    "a day": (AT.date(), "2026-03-01"),
    "a time of day": (dt.time(9, 30), "09:30:00"),
    "a decimal": (Decimal("9.50"), 9.5),
    "an integral decimal": (Decimal(7), 7),
    "a UUID": (UUID, str(UUID)),
    "an integer of numpy": (np.int64(5), 5),
    "a short float of numpy": (np.float32(0.5), 0.5),
    "a float of numpy": (np.float64(0.5), 0.5),
    "a truth of numpy": (np.bool_(True), True),
    "a text of numpy": (np.str_("x"), "x"),
    "a time of numpy": (np.datetime64("2026-03-01T09:30:00", "ns"), "2026-03-01T09:30:00"),
    "a day of numpy": (np.datetime64("2026-03-01"), "2026-03-01T00:00:00"),
    "an array of numpy": (np.array([1, 2]), [1, 2]),
    "a tuple": ((1, "x"), [1, "x"]),
    "an object": ({"a": AT.date(), "b": {"c": np.int64(1)}}, {"a": "2026-03-01", "b": {"c": 1}}),
    "keys that are numbers": ({1: "x"}, {"1": "x"}),
}
MISSING = {
    "None": None,
    "NaN": math.nan,
    "NaN of numpy": np.float32("nan"),
    "NaT": np.datetime64("NaT"),
    "a decimal NaN": Decimal("NaN"),
}


def read(documents: Any, options: ReadOptions = AS_IS) -> list[Any]:
    lines = read_objects(documents, options)
    return [line.fault or json.loads(line.data) for line in lines]


@pytest.mark.parametrize("case", VALUES)
def test_a_value_with_one_meaning_is_what_json_has_for_it(case: str) -> None:
    value, wanted = VALUES[case]
    assert read([{"id": "a", "text": "x", "m": value}]) == [{"id": "a", "text": "x", "m": wanted}]


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_value_is_none(case: str) -> None:
    (document,) = read([{"id": "a", "text": "x", "m": MISSING[case]}])
    assert document.get("m") is None


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), dt.timedelta(1), 1j])
def test_a_value_without_one_meaning_is_refused_with_its_key(value: Any) -> None:
    fault, good = read([{"id": "a", "text": "x", "m": {"n": value}}, {"id": "b", "text": "y"}])
    assert fault.startswith("'m.n' is ")
    assert "which JSON cannot hold: leave the column out, or write it as text" in fault
    assert good == {"id": "b", "text": "y"}


def test_the_dicts_of_a_program_are_not_changed() -> None:
    document = {"call": {"id": 1}, "turns": [{"said": "x", "role": "agent"}], "at": AT}
    before = repr(document)
    columns = {"id": "call.id", "text": "said", "speaker": "role"}
    assert read([document], ReadOptions(columns)) == [
        {"id": 1, "turns": [{"text": "x", "speaker": "agent"}], "at": "2026-03-01T09:30:00+00:00"}
    ]
    assert repr(document) == before


class PolarsLike:
    """A data frame with the interface of Arrow, as those of polars are."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


TABLE = pa.table({"call": [1, 2], "text": ["My refund.", "A parcel."], "at": [AT, None]})


@pytest.mark.parametrize("make", [lambda table: table, PolarsLike, pa.Table.to_reader])
def test_a_table_of_arrow_is_read(make: Any) -> None:
    assert read(make(TABLE), ReadOptions({"id": "call"})) == [
        {"id": 1, "text": "My refund.", "at": "2026-03-01T09:30:00+00:00"},
        {"id": 2, "text": "A parcel."},
    ]


def test_a_table_that_lacks_an_id_or_repeats_it_is_one_error() -> None:
    with pytest.raises(UsageError, match="no columns id and text are among the 3 of the table: s"):
        read_objects(TABLE, AS_IS)
    with pytest.raises(UsageError, match="rows 1 and 2 of the table have the same id"):
        read_objects(pa.table({"id": [1, 1], "text": ["x", "y"]}), AS_IS)


@pytest.mark.parametrize("as_table", [False, True])
def test_rows_of_turns_make_calls_in_python_too(as_table: bool) -> None:
    rows = [
        {"call": 1, "text": "Hello.", "speaker": 0, "start": 0.5, "queue": "returns"},
        {"call": 1, "text": "A refund.", "speaker": 1, "start": 2.0, "queue": "returns"},
    ]
    options = ReadOptions({"id": "call"}, "turn")
    documents = read(pa.Table.from_pylist(rows) if as_table else rows, options)
    assert documents == [
        {
            "id": "1",
            "queue": "returns",
            "turns": [
                {"text": "Hello.", "speaker": 0, "start_ms": 500},
                {"text": "A refund.", "speaker": 1, "start_ms": 2000},
            ],
        }
    ]


def test_a_client_takes_what_a_data_tool_has(client: Client) -> None:
    summary = client.ingest(TABLE, columns={"id": "call"})
    assert (summary.documents, summary.failed) == (2, 0)
    (hit,) = client.query("refund", size=1).hits
    assert (hit.id, hit.metadata["at"]) == ("1", "2026-03-01T09:30:00+00:00")
    calls = [{"id": 3, "text": f"turn {number}", "speaker": number} for number in range(3)]
    assert client.ingest(calls, rows="turn").documents == 1
    assert client.query("turn 2", size=1).hits[0].spans[0].speaker in ("0", "1", "2")


def test_if_nothing_is_taken_one_error_has_the_first_reason(client: Client) -> None:
    with pytest.raises(InputError, match="none of 2 documents was taken, the first because of th"):
        client.ingest([{"id": "a"}, {"text": "x"}])
    summary = client.ingest([{"id": "a"}, {"id": "b", "text": "My refund."}])
    assert (summary.documents, summary.failed) == (1, 1)
    assert client.ingest([]).documents == 0


def test_a_summary_shows_its_counts_and_nothing_of_the_machine() -> None:
    summary = Summary(documents=2, reasons={"no id": Reason(1, "a.jsonl:1")})
    with summary.time_stage("read"):
        text = repr(summary)
    assert text.startswith("Summary(documents=2, ")
    assert "stages" not in text
    assert summary.to_dict()["reasons"] == {"no id": 1}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "as in --columns id=call_id,text=body; the keys",
            "as in columns={'id': 'call_id', 'text': 'body'}; the keys",
        ),
        (
            'give --columns "id=Call ID,text=T" --rows turn',
            "give columns={'id': 'Call ID', 'text': 'T'} rows=\"turn\"",
        ),
        ("'x', which --columns names, is", "'x', which columns= names, is"),
    ],
)
def test_messages_name_the_arguments_of_python(message: str, expected: str) -> None:
    assert put_in_python(message) == expected


FRAME = {
    "id": [100, 101, 102],
    "text": ["My refund.", "A parcel.", None],
    "at": ["2026-03-01T09:30:00", None, None],
    "score": [1.5, None, 2.0],
}


def test_a_data_frame_of_pandas_is_read() -> None:
    pandas = pytest.importorskip("pandas", reason="make test-frameworks installs pandas")
    frame = pandas.DataFrame(FRAME)
    frame["at"] = pandas.to_datetime(frame["at"])
    frame["kind"] = pandas.array([1, None, 2], dtype="Int64")
    wanted = [
        {"id": 100, "text": "My refund.", "at": "2026-03-01T09:30:00", "score": 1.5, "kind": 1},
        {"id": 101, "text": "A parcel."},
        {"id": 102, "score": 2.0, "kind": 2},
    ]
    assert read(frame) == wanted
    assert read(frame.set_index("id")) == wanted
    turns = pandas.DataFrame({"id": [1, 1], "text": ["x", "y"], "speaker": [0, 1]})
    with pytest.raises(UsageError, match="rows 1 and 2 of the table have the same id"):
        read_objects(turns, AS_IS)
    (call,) = read(turns, ReadOptions(rows="turn"))
    assert [turn["speaker"] for turn in call["turns"]] == [0, 1]
    with pytest.raises(UsageError, match="two columns of the data frame have the same name"):
        read_objects(pandas.concat([turns, turns], axis=1), AS_IS)


def test_a_data_frame_of_polars_is_read() -> None:
    polars = pytest.importorskip("polars", reason="no extra has polars")
    assert read(polars.DataFrame(FRAME))[:2] == [
        {"id": 100, "text": "My refund.", "at": "2026-03-01T09:30:00", "score": 1.5},
        {"id": 101, "text": "A parcel."},
    ]
