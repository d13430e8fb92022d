"""The formats of ``query``, and what a person reads in a window, in a pipe and without colours."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from hybrid_search.search.result_rows import COLUMNS
from tests.helpers.cli import invoke_cli

QUERY = ("query", "put the money back", "--size", "2", "--where", "sector=shop")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _sample(sample_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", sample_url)


def test_a_line_of_jsonl_is_a_hit_of_json() -> None:
    hits = invoke_cli(*QUERY, "--format", "json").json["hits"]
    assert invoke_cli(*QUERY, "--json").json["hits"] == hits
    lines = invoke_cli(*QUERY, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == hits


def test_a_row_of_csv_is_a_span() -> None:
    hits = invoke_cli(*QUERY, "--json").json["hits"]
    rows = list(csv.DictReader(io.StringIO(invoke_cli(*QUERY, "--format", "csv").stdout)))
    assert tuple(rows[0]) == COLUMNS
    assert [row["text"] for row in rows] == [span["text"] for hit in hits for span in hit["spans"]]
    assert json.loads(rows[0]["metadata"]) == hits[0]["metadata"]


def test_people_read_the_second_of_a_span() -> None:
    hits = invoke_cli(*QUERY, "--json").json["hits"]
    span = next(span for hit in hits for span in hit["spans"] if span["start_ms"] is not None)
    minutes, seconds = divmod(span["start_ms"] // 1000, 60)
    place = f"{minutes}:{seconds:02} {span['cosine']:.3f} [{span['start']}:{span['end']}]"
    assert place in invoke_cli(*QUERY).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "xml"], "--format is 'xml': it must be 'text' or 'json' or 'jsonl' or 'csv'"),
        (["--format", "csv", "--json"], "--format is 'csv' beside --json: leave one of them out"),
    ],
)
def test_a_wrong_format_is_an_error(arguments: list[str], message: str) -> None:
    result = invoke_cli(*QUERY, *arguments)
    assert result.status == 2
    assert message in result.stderr


def test_people_read_how_probable_each_hit_is_and_that_nothing_likely_was_found() -> None:
    likely = invoke_cli(*QUERY).stdout
    assert re.search(r"score 0\.\d{3}  \(probability 0\.[5-9]\d, BM25", likely)
    assert "nothing likely" not in likely
    absent = ("query", "a solar eclipse over the glacier", "--size", "2")
    first, second, *_ = invoke_cli(*absent).stdout.splitlines()
    assert re.fullmatch(r"2 of \d+ hits", first)
    assert re.fullmatch(r"nothing likely found: the most probable of these has 0\.[0-4]\d", second)
    assert invoke_cli(*absent, "--json").json["likely"] == 0
    assert "nothing likely" not in invoke_cli(*absent, "--spans-by", "cosine").stdout


def test_in_a_pipe_matches_stand_in_brackets_in_their_sentence() -> None:
    output = invoke_cli(*QUERY).stdout
    assert "\x1b" not in output
    words = " ".join(output.split())
    assert "[Could you just put the money back on my card instead]?" in words
    assert "I don't really need it." in words


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_lines_are_no_wider_than_the_window(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = invoke_cli(*QUERY).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)


def test_on_a_terminal_matches_are_coloured_and_without_colours_they_stand_in_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    coloured = invoke_cli(*QUERY).stdout
    assert re.search(r"\x1b\[[0-9;]*43m[^\x1b]*money back", coloured)
    assert "[Could" not in STYLE.sub("", coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = invoke_cli(*QUERY).stdout
    assert not re.search(r"\x1b\[[0-9;]*(3|4)\dm", plain)
    assert "[Could you just put the money back" in STYLE.sub("", plain)
