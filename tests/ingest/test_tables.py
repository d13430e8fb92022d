"""CSV, TSV and Parquet as sources: which column gives which key, and which rows are refused."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_search import connect
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import arrow_tables, csv_tables, files
from hybrid_search.ingest.sources.read_options import Columns, ReadOptions, parse_columns
from hybrid_search.ingest.types import SourceLine
from tests.helpers.cli import invoke_cli


@pytest.fixture(autouse=True)
def _restored_limit() -> Iterator[None]:
    """Set the limit of the csv module, which is the process's, back after each test."""
    before = csv.field_size_limit()
    yield
    csv.field_size_limit(before)


REJECTS = Path("calls.rejected.jsonl")
MAPPED = parse_columns("id=call_id,text=body")


def write_source(data: bytes, name: str = "calls.csv") -> str:
    Path(name).write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    return name


def read_lines(source: str, columns: Columns | None = None) -> list[SourceLine]:
    return list(files.read([source], ReadOptions(columns or {})))


def read_documents(source: str, columns: Columns | None = None) -> list[dict[str, Any]]:
    source_lines = read_lines(source, columns)
    assert not [line for line in source_lines if line.fault]
    return [json.loads(line.data) for line in source_lines]


def read_faults(source: str, columns: Columns | None = None) -> list[tuple[int, bytes, str | None]]:
    return [
        (line.number, line.data, line.fault) for line in read_lines(source, columns) if line.fault
    ]


@pytest.mark.parametrize(
    ("name", "cut"),
    [("calls.csv", b","), ("calls.tsv", b"\t"), ("calls.csv.gz", b","), ("CALLS.TSV.GZ", b"\t")],
)
def test_columns_give_keys_and_all_others_become_metadata_as_text(name: str, cut: bytes) -> None:
    source = write_source(b"id,text,sector,n\na,I want a refund,shop,7\n".replace(b",", cut), name)
    assert read_documents(source) == [
        {"id": "a", "text": "I want a refund", "sector": "shop", "n": "7"}
    ]


@pytest.mark.parametrize(
    ("table", "columns", "document"),
    [
        ("id,text,sector\na,hello,\n", "", {"id": "a", "text": "hello"}),
        ("\ufeffid,text\na,hello\n", "", {"id": "a", "text": "hello"}),
        ('id,"Body, full"\na,hello\n', 'id=id,"text=Body, full"', {"id": "a", "text": "hello"}),
        (
            "call_id,body,industry\na,hello,bank\n",
            "id=call_id, text=body,customer.sector=industry",
            {"id": "a", "text": "hello", "customer.sector": "bank"},
        ),
    ],
)
def test_columns_are_mapped_and_empty_cells_left_out(
    table: str, columns: str, document: dict[str, Any]
) -> None:
    assert read_documents(write_source(table.encode()), parse_columns(columns)) == [document]


@pytest.mark.parametrize("mapping", ["id", "=body", "id=a,id=b", "id=a,,text=b", ""])
def test_what_is_no_mapping_is_an_error(mapping: str) -> None:
    if not mapping:
        assert parse_columns(mapping) == {}
        return
    with pytest.raises(UsageError, match="--columns takes KEY=COLUMN"):
        parse_columns(mapping)


def test_quoted_newlines_commas_and_quotes_are_text_and_rows_are_numbered_by_first_line() -> None:
    source = write_source(b'id,text\r\na,"one\r\ntwo, ""three"""\r\n\r\nb,four\r\n')
    assert [(line.number, json.loads(line.data)["text"]) for line in read_lines(source)] == [
        (2, 'one\r\ntwo, "three"'),
        (5, "four"),
    ]


def test_a_text_may_be_longer_than_the_csv_module_allows_by_default() -> None:
    assert len(read_documents(write_source(b"id,text\na," + b"x" * 200_000))[0]["text"]) == 200_000


def test_an_empty_file_and_one_with_a_header_alone_have_no_rows() -> None:
    assert read_lines(write_source(b"")) == []
    assert read_lines(write_source(b"id,text\n")) == []


BAD = b'id,text\na,good\nb\nc,"two\nlines",more\ne,"stray" quote\nf,good\n'


def test_bad_rows_are_refused_as_they_stand_with_their_line_and_good_ones_are_read() -> None:
    source = write_source(BAD)
    assert read_faults(source) == [
        (3, b"b\n", "the row has 1 cells, but the header has 2"),
        (4, b'c,"two\nlines",more\n', "the row has 3 cells, but the header has 2"),
        (6, b'e,"stray" quote\n', "a quote inside a quoted cell stands alone: write it twice"),
    ]
    assert [json.loads(line.data)["id"] for line in read_lines(source) if not line.fault] == [
        "a",
        "f",
    ]


def test_a_row_that_is_not_utf8_behind_many_that_are_is_refused_and_names_the_option() -> None:
    rows = b"".join(b"%d,good\n" % number for number in range(10_000))
    source = write_source(b"id,text\n" + rows + b"last,caf\xe9\n")
    assert read_faults(source) == [
        (
            10_002,
            b"last,caf\xe9\n",
            "not UTF-8 in cell 2, as the file is at its beginning: name its encoding, "
            "as in --encoding windows-1252",
        )
    ]
    options = ReadOptions(encoding="windows-1252")
    *_, last = files.read([source], options)
    assert json.loads(last.data) == {"id": "last", "text": "café"}


def test_a_quote_that_nobody_closes_takes_the_rest_with_it_and_says_so() -> None:
    assert read_faults(write_source(b'id,text\na,"never closed\nb,lost\n')) == [
        (
            2,
            b'a,"never closed\nb,lost\n',
            "a quote is opened and never closed: the rest of the file is in this row",
        )
    ]


@pytest.mark.parametrize(
    ("header", "columns", "fault"),
    [
        (
            b"ticket_id,body",
            {},
            (
                "no columns id and text are among the 2 of the table: give "
                "--columns id=ticket_id,text=body"
            ),
        ),
        (
            b"call_id,text",
            MAPPED,
            "no column 'body', which --columns names, is among the 2 of the table: "
            "name one that is",
        ),
        (
            b"number,what",
            {},
            "no columns id and text are among the 2 of the table: say which they are, as in "
            "--columns id=call_id,text=body",
        ),
    ],
)
def test_a_header_that_does_not_fit_is_one_fault_and_the_next_source_is_read(
    header: bytes, columns: Columns, fault: str
) -> None:
    assert read_faults(write_source(header + b"\na,b,c\n"), columns)[0][::2] == (1, fault)


def test_a_gzip_file_that_breaks_off_says_so_behind_its_rows() -> None:
    Path("cut.csv.gz").write_bytes(gzip.compress(b"id,text\na,hello\nb,hello\n")[:-8])
    (last,) = read_lines("cut.csv.gz")  # what its whole has is not known, as ids may repeat
    assert last.fault is not None
    assert last.fault.startswith("the source cannot be read on after line 0: it is damaged")


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=2),
        unique_by=lambda cells: cells[0],
    )
)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_written_as_csv_is_read_as_it_was(cells: list[list[str]]) -> None:
    with Path("x.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text"], *cells])
    assert [[document["id"], document["text"]] for document in read_documents("x.csv")] == cells


@given(st.binary() | st.text('",\n\r\tax', max_size=60).map(str.encode))
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_bytes_are_called_csv_each_row_is_a_document_or_a_fault(data: bytes) -> None:
    for line in read_lines(write_source(b"id,text\n" + data)):
        assert line.fault or isinstance(json.loads(line.data), dict)
        assert line.number >= (1 if "nothing of it was taken" in (line.fault or "") else 2)


def write_parquet(
    name: str = "calls.parquet", schema: pa.Schema | None = None, **columns: Any
) -> str:
    pq.write_table(pa.table(columns, schema=schema), name, row_group_size=2)
    return name


def test_parquet_rows_are_documents_and_empty_cells_are_left_out() -> None:
    source = write_parquet(
        id=["a", "b", "c"],
        text=["one", "two", "three"],
        sector=["shop", None, ""],
        n=[1, 2, None],
        ok=[True, None, False],
    )
    assert read_documents(source) == [
        {"id": "a", "text": "one", "sector": "shop", "n": 1, "ok": True},
        {"id": "b", "text": "two", "n": 2},
        {"id": "c", "text": "three", "ok": False},
    ]
    assert [line.number for line in read_lines(source)] == [1, 2, 3]


def test_lists_of_structs_are_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", "embedded:store")
    turns = [
        {"speaker": "agent", "text": "Hello.", "start_ms": 0},
        {"speaker": "customer", "text": "Where is my parcel?", "start_ms": 900},
    ]
    source = write_parquet(id=["a"], dialogue=[turns])
    assert read_documents(source, parse_columns("turns=dialogue")) == [{"id": "a", "turns": turns}]
    assert invoke_cli("ingest", source, "--columns", "turns=dialogue").json["documents"] == 1
    (hit,) = invoke_cli("query", "parcel", "--json").json["hits"]
    assert (hit["spans"][0]["speaker"], hit["spans"][0]["start_ms"]) == ("customer", 900)


def test_times_become_iso_strings_decimals_numbers_and_maps_objects() -> None:
    at = dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)
    nanoseconds = pa.array(
        [[{"at": 1_772_357_400_000_000_123}]], pa.list_(pa.struct([("at", pa.timestamp("ns"))]))
    )
    price = pa.array([Decimal("9.50")], pa.decimal128(10, 2))
    labels = pa.array([[("tier", "gold")]], pa.map_(pa.string(), pa.string()))
    source = write_parquet(
        id=["a"],
        text=["x"],
        day=pa.array([at.date()]),
        at=pa.array([at], pa.timestamp("ms", "UTC")),
        fine=nanoseconds,
        price=price,
        labels=labels,
    )
    (document,) = read_documents(source)
    assert (document["day"], document["at"]) == ("2026-03-01", "2026-03-01T09:30:00+00:00")
    assert document["fine"] == [{"at": "2026-03-01T09:30:00"}]
    assert (document["price"], document["labels"]) == (9.5, {"tier": "gold"})


def test_binary_is_refused_with_a_reason_and_the_row_is_told() -> None:
    source = write_parquet(id=["a", "b"], text=["x", "y"], audio=[b"\x00", None])
    assert read_faults(source) == [
        (
            1,
            b'{"id": "a", "text": "x"}',
            "'audio' is binary, which JSON cannot hold: leave the column out, or write it as text",
        )
    ]
    assert [json.loads(line.data) for line in read_lines(source) if not line.fault] == [
        {"id": "b", "text": "y"}
    ]


def test_text_that_is_no_utf8_and_a_year_that_no_calendar_has_are_refused() -> None:
    text = pa.array([b"good", b"caf\xe9"]).view(pa.string())
    assert read_faults(write_parquet(id=["a", "b"], text=text)) == [
        (2, b'{"id": "b"}', "not UTF-8 in 'text'")
    ]
    faults = read_faults(
        write_parquet(id=["a"], text=["x"], at=pa.array([2**60], pa.timestamp("us")))
    )
    assert faults[0][2] is not None
    assert faults[0][2].startswith("'at' cannot be read: times lie within the years ")


def test_a_file_that_is_only_called_parquet_or_breaks_off_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = read_faults(write_source(b"PAR1 nonsense PAR1", "x.parquet"))[0][2]
    assert reason is not None
    assert reason.startswith("the source cannot be read on after line 0: ")
    parquet_bytes = Path(write_parquet(id=list("abcd"), text=["some text"] * 4)).read_bytes()
    Path("cut.parquet").write_bytes(parquet_bytes[: len(parquet_bytes) // 2])
    assert [line.fault is None for line in read_lines("cut.parquet")] == [False]


def test_rows_are_held_by_their_size_not_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [str(number) for number in range(10)]
    source = write_parquet(id=ids, text=["x" * 1000 + id_ for id_ in ids])
    monkeypatch.setattr(arrow_tables, "BATCH_BYTES", 1)
    assert [document["id"] for document in read_documents(source)] == ids


def test_without_pyarrow_the_extra_is_named_before_anything_begins() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None; from pathlib import Path; from "
        "hybrid_search.ingest.sources import files\n"
    )
    program += "files.check(['calls.parquet'], Path('r'))"
    write_parquet(id=["a"], text=["x"])
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (
        "MissingExtraError: Parquet files and Arrow tables need pyarrow: "
        "pip install 'hybrid-span-search[parquet]'" in result.stderr
    )


def test_a_table_goes_in_by_the_command_and_its_bad_rows_into_the_rejects() -> None:
    url = "embedded:store"
    source = write_source(b"call_id,body,sector\na,I want a refund,shop\nb\n")
    result = invoke_cli("ingest", source, "--columns", "id=call_id,text=body", "--url", url)
    assert (
        result.status,
        result.json["read"],
        result.json["documents"],
        result.json["failed"],
    ) == (1, 2, 1, 1)
    entry = json.loads(Path("store", REJECTS).read_text())
    assert entry == {
        "source": "calls.csv",
        "line": 3,
        "reason": "the row has 1 cells, but the header has 3",
        "document": "b",
        "fault": True,
    }
    with connect(url) as client:
        assert client.query("refund").hits[0].metadata == {"sector": "shop"}


def test_a_cell_over_the_limit_is_a_fault_and_reading_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_tables, "MAX_CELL", 1000)
    source = write_source(b'id,text\na,"' + b"line\n" * 300 + b"\nb,good\n")
    assert read_faults(source)[0][2] == (
        "a cell is over 1000 characters long: is a quote never closed?"
    )
    assert json.loads(read_lines(source)[-1].data) == {"id": "b", "text": "good"}


def test_an_over_long_line_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_tables, "MAX_CELL", 2000)
    source = write_source(b"id,text\na," + b"x" * 5000 + b"\nb,good\n")
    assert [(line.number, line.fault) for line in read_lines(source)] == [
        (2, "the line is over 2000 characters long"),
        (3, None),
    ]
