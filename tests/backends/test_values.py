"""Dates, numbers and texts in metadata are compared by their values, alike in every store."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.types import SourceLine

pytestmark = pytest.mark.usefixtures("tiny_encoder")

TIMES: dict[str, str | list[str] | None] = {
    "d1": "2026-03-02T10:00:00+02:00",  # 08:00 UTC
    "d2": "2026-03-02T09:30:00Z",
    "d3": "2026-03-02",  # midnight, UTC
    "d4": "2026-03-01T23:30:00-05:00",  # 04:30 UTC on 2 March
    "d5": "2026-03-02 09:30:00.5",  # UTC, as no offset is given
    "d6": "unknown",
    "d7": None,
    "d8": ["2026-02-01", "2026-04-01"],
}


@pytest.fixture
def calls(client: Client) -> Client:
    client.ingest(
        [{"id": name, "text": "word one", "call": {"at": at}} for name, at in TIMES.items()]
    )
    return client


def find_ids(client: Client, where: dict[str, Any], **options: Any) -> list[str]:
    result = client.query("word", where=where, size=50, **options)
    return [hit.id for hit in result]


DATE_CONDITIONS: list[tuple[object, str]] = [
    ({"gte": "2026-03-02T09:00Z"}, "d2 d5 d8"),
    ({"gte": "2026-03-02T11:00+02:00"}, "d2 d5 d8"),
    ({"gt": "2026-03-02T09:30:00Z"}, "d5 d8"),
    ({"lt": "2026-03-02T08:00:00Z"}, "d3 d4 d8"),
    ({"lte": "2026-03-02T08:00:00Z"}, "d1 d3 d4 d8"),
    ({"lte": "2026-03-02"}, "d1 d2 d3 d4 d5 d8"),
    ({"gte": "2026-03-02", "lte": "2026-03-02"}, "d1 d2 d3 d4 d5"),
    ({"gt": "2026-03-02"}, "d8"),
    ({"lt": "2026-03-02"}, "d8"),
    ({"gte": "2026-03", "lte": "2026-03"}, "d1 d2 d3 d4 d5"),
    ({"gte": "2026"}, "d1 d2 d3 d4 d5 d8"),
    ({"gte": date(2026, 3, 2), "lt": datetime(2026, 3, 2, 9, tzinfo=UTC)}, "d1 d3 d4"),
    ("2026-03-02", "d1 d2 d3 d4 d5"),
    ("2026-03-02T08:00Z", "d1"),
    (datetime(2026, 3, 2, 9, 30), "d2"),
    (["2026-03-02T08:00Z", "unknown", "2026-04"], "d1 d6 d8"),
    ({"ne": "2026-03-02"}, "d6 d7 d8"),
    ({"ne": ["2026-03-02", "unknown"]}, "d7 d8"),
    ({"exists": True}, "d1 d2 d3 d4 d5 d6 d8"),
    ({"exists": False}, "d7"),
    ({"exists": True, "ne": "2026-03-02"}, "d6 d8"),
]


def test_dates_are_compared_by_time(calls: Client) -> None:
    for criterion, expected in DATE_CONDITIONS:
        for alpha in (0, 1):
            ids = find_ids(calls, {"call.at": criterion}, alpha=alpha)
            assert sorted(ids) == expected.split(), criterion


def test_what_is_no_date_is_refused_as_a_bound_of_dates(calls: Client) -> None:
    message = r"cannot compare the dates of 'call\.at' with .*2026-03"
    for bound in ("nonsense", "2026-02-30", 5, True, ""):
        with pytest.raises(UsageError, match=message):
            calls.query("word", where={"call.at": {"gte": bound}})


def test_dates_are_sorted_by_time_and_others_come_last(calls: Client) -> None:
    for sort, expected in [
        ("call.at", "d8 d3 d4 d1 d2 d5"),  # the least of several values counts
        ("-call.at", "d8 d5 d2 d1 d4 d3"),
    ]:
        ids = find_ids(calls, {}, sort=sort)
        assert ids[:6] == expected.split()
        assert set(ids[6:]) == {"d6", "d7"}


def test_facets_show_dates_as_they_are_written(calls: Client) -> None:
    texts = [
        at
        for value in TIMES.values()
        for at in ([value] if isinstance(value, str) else value or [])
    ]
    for over in ("window", "matches"):
        result = calls.query("word", facets=["call.at"], facets_over=over)
        assert result.facets == {"call.at": dict.fromkeys(texts, 1)}


CELLS = """id,text,score,ref,paid,queue,opened
c1,word one,4.5,007,true,Sales,2026-03-01
c2,word two,10,7,false,Tech,2026-03-02T09:00:00Z
c3,word three,3,A-7,true,Sales,2026-03-03
c4,word four,-1.25,70,false,Billing,2026-03-04
"""
"""What a table of texts has, where every cell is a text."""


def write_csv(path: Path) -> None:
    path.write_text(CELLS, encoding="utf-8")


def write_json(path: Path) -> None:
    rows = csv.DictReader(CELLS.splitlines())
    typed_rows = ({**row, "score": float(row["score"])} for row in rows)
    path.write_text("\n".join(map(json.dumps, typed_rows)), encoding="utf-8")


def write_parquet(path: Path) -> None:
    rows = list(csv.DictReader(CELLS.splitlines()))
    for row in rows:
        row["score"] = Decimal(row["score"])
        row["opened"] = datetime.fromisoformat(row["opened"]).replace(tzinfo=UTC)
    parquet.write_table(pa.Table.from_pylist(rows), path)


@pytest.fixture(params=[write_csv, write_json, write_parquet])
def table(client: Client, request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    """The same rows as texts, with numbers, and with types of their own."""
    path = tmp_path / f"rows.{request.param.__name__.removeprefix('write_')}"
    request.param(path.with_suffix(".jsonl") if path.suffix == ".json" else path)
    client.ingest_lines(files.read([str(next(tmp_path.glob("rows.*")))]))
    return client


CELL_CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"score": {"gte": 3}}, "c1 c2 c3"),
    ({"score": {"gt": "3", "lt": "10"}}, "c1"),
    ({"score": {"lt": 4.5}}, "c3 c4"),
    ({"score": 10}, "c2"),
    ({"score": [3, 4.5]}, "c1 c3"),
    ({"score": {"ne": 10}}, "c1 c3 c4"),
    ({"score": {"lt": 2**70}}, "c1 c2 c3 c4"),
    ({"ref": "7"}, "c2"),
    ({"ref": "007"}, "c1"),
    ({"ref": {"gte": 7}}, "c2 c4"),
    ({"paid": "true"}, "c1 c3"),
    ({"queue": {"ne": "Sales"}}, "c2 c4"),
    ({"queue": {"ne": ["Sales", "Tech"]}}, "c4"),
    ({"queue": {"gte": "Sales"}}, "c1 c2 c3"),
    ({"queue": "Sales", "opened": {"gt": "2026-03-01"}}, "c3"),
    ({"opened": {"lte": "2026-03-02"}}, "c1 c2"),
    ({"id": {"ne": "c1"}}, "c2 c3 c4"),
    ({"id": {"exists": False}}, ""),
    ({"id": {"gte": "c3"}}, "c3 c4"),
]


def test_cells_are_compared_by_what_they_are(table: Client) -> None:
    for where, expected in CELL_CONDITIONS:
        assert sorted(find_ids(table, where)) == expected.split(), where


def test_numbers_are_sorted_by_size(table: Client) -> None:
    assert find_ids(table, {}, sort="score") == ["c4", "c3", "c1", "c2"]
    assert find_ids(table, {}, sort="-score") == ["c2", "c1", "c3", "c4"]


IMPOSSIBLE_CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"score": {"gte": "many"}}, "cannot filter 'score' by 'many': the field is a number"),
    ({"score": {"gte": "2026-03-01"}}, "cannot filter 'score' by '2026-03-01'"),
    ({"score": {"gte": "nan"}}, "cannot filter 'score' by 'nan'"),
    ({"queue": {"gte": "2026-03-01"}}, "cannot compare 'queue' with '2026-03-01'"),
    ({"queue": {"lt": "5"}}, "cannot compare 'queue' with '5'"),
    ({"queue": {"lt": 5}}, "cannot filter 'queue' by 5: the field is a string"),
    ({"queue": {"exists": 1}}, "cannot filter 'queue' by exists 1: give true or false"),
    ({"queue": {"ne": None}}, "cannot filter 'queue' by None"),
    ({"que": {"ne": "Sales"}}, "cannot filter on 'que': the index has no such field"),
    ({"que": {"exists": False}}, "cannot filter on 'que': the index has no such field"),
]


def test_a_condition_that_cannot_be_of_the_fields_type_is_refused(table: Client) -> None:
    for where, message in IMPOSSIBLE_CONDITIONS:
        with pytest.raises(UsageError, match=re.escape(message)):
            table.query("word", where=where)


def test_a_field_becomes_one_of_dates_with_its_first_date(client: Client) -> None:
    def ingest(id: str, at: str) -> None:
        assert client.ingest([{"id": id, "text": "word", "at": at}]).documents == 1

    ingest("a", "unknown")
    assert client.describe().fields["at"] == "string"
    with pytest.raises(UsageError, match="no document has a date there"):
        client.query("word", where={"at": {"gte": "2026-03-01"}})
    ingest("b", "12")
    assert client.describe().fields["at"] == "numeric string"
    ingest("c", "2026-03-02")
    ingest("d", "never")
    assert client.describe().fields["at"] == "date"
    assert find_ids(client, {"at": {"gte": "2026-03-01"}}) == ["c"]
    assert find_ids(client, {"at": "never"}) == ["d"]
    assert sorted(find_ids(client, {"at": {"exists": True}})) == ["a", "b", "c", "d"]


def test_values_follow_a_document_that_is_replaced_deleted_and_reindexed(client: Client) -> None:
    def ingest(at: str) -> None:
        client.ingest([{"id": "a", "text": "word", "at": at}, {"id": "b", "text": "word"}])

    ingest("2026-03-01")
    ingest("2026-04-01")
    if isinstance(client.backend, ServerBackend):
        client.reindex()
    assert find_ids(client, {"at": {"gte": "2026-03-02"}}) == ["a"]
    assert find_ids(client, {"at": {"lt": "2026-03-02"}}) == []
    assert client.verify().is_sound
    client.delete(["a"])
    assert find_ids(client, {"at": {"exists": True}}) == []
    assert find_ids(client, {"at": {"exists": False}}) == ["b"]
    assert client.verify().is_sound


def test_an_ingest_selects_by_the_same_values(client: Client, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv")
    selections: list[tuple[dict[str, Any], list[str]]] = [
        ({"opened": {"gte": "2026-03-02"}, "queue": {"ne": "Sales"}}, ["c2", "c4"]),
        ({"score": {"lt": "4.5"}, "reason": {"exists": False}}, ["c3", "c4"]),
        ({"reason": {"ne": "x"}, "opened": "2026-03-02"}, ["c2"]),
        ({"opened": {"gte": date(2026, 3, 4)}}, ["c4"]),
    ]
    for where, expected in selections:
        lines = files.read([str(tmp_path / "rows.csv")])
        client.ingest_lines(lines, where=where)
        assert sorted(find_ids(client, {})) == expected
        client.drop("calls")


def read_warnings(client: Client, **options: Any) -> list[str]:
    result = client.query("word", **options)
    assert (len(result), result.total) == (0, 0)
    warnings: list[str] = result.plan.get("warnings", [])
    return warnings


def test_a_query_without_hits_says_why(client: Client) -> None:
    client.setup()
    (warning,) = read_warnings(client)
    assert warning == "index 'calls' is empty: hybrid-search ingest FILE --index calls"
    documents = [
        {"id": "a", "text": "word", "queue": "Sales", "at": "2026-03-01"},
        {"id": "b", "text": "word", "queue": "Tech", "at": "2026-03-02"},
    ]
    client.ingest(documents)
    for alpha in (0, 1):
        (warning,) = read_warnings(client, where={"queue": "Sale"}, alpha=alpha)
        assert warning == "no document fulfils 'queue': 'Sale'. Values of 'queue' are Sales, Tech"
    (warning,) = read_warnings(client, where={"at": {"gte": "2026-04"}, "queue": "Sales"})
    assert warning.startswith("no document fulfils 'at': {'gte': '2026-04'}. Values of 'at' are 20")
    (warning,) = read_warnings(client, where={"at": "2026-03-02", "queue": "Sales"})
    assert warning.startswith("no document fulfils all of where together: {'at': '2026-03-02'")
    (warning,) = read_warnings(client, where={"id": "c"})
    assert warning == "no document fulfils 'id': 'c'. Values of 'id' are a, b"
    with pytest.raises(UsageError, match="cannot filter 'at' by 'soon': the field has dates"):
        client.query("word", where={"at": "soon"})
    absent = client.query("elsewhere", alpha=0)
    (warning,) = absent.plan["warnings"]
    assert absent.total == 0
    assert warning.startswith("no document has a word of 'elsewhere', and alpha 0 is BM25 only")


def test_an_ingest_that_selects_nothing_says_so(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    line = SourceLine("calls.jsonl", 1, b'{"id": "a", "text": "word", "queue": "Sales"}')
    client.ingest_lines([line], where={"queue": "Sale"})
    assert "none of the 1 documents that were read fulfils where" in caplog.text
