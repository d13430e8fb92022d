"""A result as a table: a row a span, in CSV without formulas, and in pandas."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace

import pytest

from hybrid_search.client import Client
from hybrid_search.errors import MissingExtraError
from hybrid_search.observability.escapes import defuse_cell
from hybrid_search.search.hit import Hit, Span
from hybrid_search.search.result import Result
from hybrid_search.search.result_rows import COLUMNS, format_csv, list_rows

FORMULA = '=HYPERLINK("http://evil.example","click")'
SPANS = [Span(0, 5, "-5 of", -0.25, speaker="+agent"), Span(7, 9, "ok", 0.5)]
HITS = [
    Hit(FORMULA, 0, 0.5, 1.5, -0.25, None, 2, {"@a": "=1+1"}, SPANS),
    Hit("b", 1, 0.25, 0.0, 0.125, 1, None, {}, []),
]


def test_a_row_is_a_span_and_a_hit_without_spans_has_one() -> None:
    rows = list(list_rows(HITS))
    assert [tuple(row) for row in rows] == [COLUMNS] * 3
    assert [(row["hit"], row["text"], row["span_cosine"]) for row in rows] == [
        (1, "-5 of", -0.25),
        (1, "ok", 0.5),
        (2, None, None),
    ]


def test_a_row_has_the_probability_of_its_hit() -> None:
    hits = [replace(HITS[0], probability=0.25), HITS[1]]
    rows = list(csv.DictReader(io.StringIO(format_csv(hits))))
    assert [row["probability"] for row in rows] == ["0.25", "0.25", ""]


def test_no_text_of_a_csv_begins_as_a_formula_and_numbers_stay() -> None:
    rows = list(csv.DictReader(io.StringIO(format_csv(HITS))))
    assert rows[0]["id"] == f"'{FORMULA}"
    assert (rows[0]["text"], rows[0]["speaker"]) == ("'-5 of", "'+agent")
    assert (rows[0]["cosine"], rows[0]["span_cosine"]) == ("-0.25", "-0.25")
    assert rows[0]["metadata"] == '{"@a": "=1+1"}'
    assert rows[2]["text"] == rows[2]["span_cosine"] == ""


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1", "'=1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r\n=1", "'\r\n=1"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("a=1", "a=1"),
        ("", ""),
        (-1, -1),
        (-0.5, -0.5),
        (None, None),
    ],
)
def test_a_formula_gets_a_quote_and_nothing_else_does(value: object, cell: object) -> None:
    assert defuse_cell(value) == cell


def test_without_pandas_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install '.*\[pandas\]'"):
        Result(HITS, 2).to_pandas()


@pytest.mark.frameworks
def test_a_table_of_pandas_has_the_spans_and_the_metadata(sample: Client) -> None:
    pytest.importorskip("pandas", reason="make test-frameworks installs pandas")
    result = sample.query("money back", size=3)
    frame = result.to_pandas()
    assert list(frame["text"]) == [span.text for hit in result for span in hit.spans]
    assert list(frame["hit"].unique()) == [1, 2, 3]
    assert frame["metadata.sector"][0] == result.hits[0].metadata["sector"]
    empty = Result([], 0).to_pandas()
    assert len(empty) == 0
    assert "text" in empty.columns
