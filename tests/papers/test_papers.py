"""The papers' tables: every row is there, can be loaded, and shows our figure or what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from papers import measured, tables
from papers.evaluations import EVALUATIONS
from papers.systems.registry import SYSTEMS

TABLES = [table for paper in tables.PAPERS for table in tables.read(paper)]

ROWS = {
    "SLICE, table 1": 19,  # 1 baseline, 6 in full context, 5 an n-gram, 7 in a single pass
    "PiC, table 3": 6 * 4,
    "PiC, table 4": 4,
    "PiC, table 5": 2 * 7 + 1,  # USE has no context
    "PiC, table 6a": 8,
    "PiC, table 6b": 8,
    "PiC, table 6c": 8,
    "PiC, table A3": 2 + 1 + 4,
    "PiC, table A4": 8 * 3,
    "PiC, table A5b": 6 * 2,
    "Answers": 0,  # ours
    "McPhraSy, table 2: Turney": 10,
    "McPhraSy, table 2: PPDB-filtered": 9,  # joint-SB has no figure
    "McPhraSy, table 3": 6 * 4,
    "Synonyms": 0,  # ours
    "Senses": 0,
}
"""Counted in the papers."""


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_row_of_a_paper_is_missing(table: tables.Table) -> None:
    theirs = [row for row in table.rows if row.figures]
    assert len(theirs) == ROWS[table.name]
    assert all(len(row.figures) == len(table.columns) for row in theirs)
    assert len({(row.system, row.setup) for row in table.rows}) == len(table.rows)
    assert table.task in EVALUATIONS
    assert {row.system for row in table.rows} <= {*SYSTEMS, tables.PEOPLE}


def test_every_table_is_counted() -> None:
    assert [table.name for table in TABLES] == list(ROWS)


def test_every_row_that_is_ours_alone_can_be_run() -> None:
    tasks_by_system = tables.tasks_by_system()
    assert {table.task for table in TABLES} == {
        task for tasks in tasks_by_system.values() for task in tasks
    }
    assert tasks_by_system["mcphrasy"] == [
        "turney",
        "ppdb-filtered",
        "clusters",
        "synonyms",
        "senses",
    ]
    assert tables.PEOPLE not in tasks_by_system


TABLE = tables.Table(
    "T",
    "About it.",
    "clusters",
    ("V", "ARI"),
    (
        tables.Row("glove", "k = 10", (0.5, 0.25)),
        tables.Row("slice", "k = 10"),
        tables.Row("slice", "k = 20"),
    ),
    False,
)


def test_a_row_shows_our_figure_beside_the_paper_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "read", lambda _: [TABLE])
    (tmp_path / "clusters_glove.json").write_text(
        json.dumps({"setups": {"k = 10": {"V": 0.625, "ARI": 0.125}}})
    )
    (tmp_path / "clusters_slice.json").write_text(
        json.dumps({"setups": {"k = 20": {"V": 0.75, "ARI": 0.25}}})
    )
    lines = tables.render_paper("any").splitlines()
    assert lines[:3] == ["### T", "", "About it. `--task clusters`: V, ARI."]
    assert lines[4:] == [
        "| system | k = 10 | k = 20 |",
        "| --- | ---: | ---: |",
        "| `glove` | 0.500, 0.250; **0.625, 0.125** |  |",
        "| `slice` |  | **0.750, 0.250** |",
    ]


def test_a_system_that_was_not_measured_says_what_it_takes() -> None:
    rows = tables.render_missing().splitlines()
    assert "| bert | `google-bert/bert-base-uncased` |" in rows
    assert any(row.startswith("| glove | glove.840B.300d.txt") for row in rows)
    names = {row.split(" | ")[0].removeprefix("| ") for row in rows[2:]}
    assert "longformer" in names  # of its reader, the encoder
    assert not names & {"slice", "mcphrasy"}  # were measured


def test_percents_are_a_hundredfold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    table = next(paper_table for paper_table in TABLES if paper_table.name == "PiC, table 5")
    (tmp_path / "pic-pr-pass_use-v5.json").write_text(
        json.dumps(
            {"setups": {"phrase": {"top-1": 0.5, "top-3": 0.75, "top-5": 1.0, "MRR@5": 0.625}}}
        )
    )
    row = next(table_row for table_row in table.rows if table_row.system == "use-v5")
    assert tables.measured_figures(table, row) == (50.0, 75.0, 100.0, 62.5)
