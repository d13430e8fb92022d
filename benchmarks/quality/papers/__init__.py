"""The tables of the three papers beside what was measured here: a row for every system, and where
it was not measured, what it needs.

The figures are in the TOML files beside this one, as the papers print them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.quality.systems.registry import SYSTEMS

FOLDER = Path(__file__).parent
PAPERS = ("slice", "pic", "mcphrasy")

PEOPLE = "people"
"""A row that no system can be measured for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system in a set-up; `figures` are the paper's, one for each column, none where the row is
    ours alone.
    """

    system: str
    setup: str
    figures: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a paper.

    `task` is the evaluation that measures it; with `percent` figures are shown times 100.
    """

    name: str
    about: str
    task: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    percent: bool


def read(paper: str) -> list[Table]:
    """The tables of ``PAPER.toml``."""
    toml_tables = tomllib.loads((FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))["tables"]
    return [_table(toml_table) for toml_table in toml_tables]


def _table(toml_table: Mapping[str, Any]) -> Table:
    rows = [
        Row(system, setup, tuple(figures))
        for system, setup, *figures in (*toml_table["rows"], *toml_table.get("extra", ()))
    ]
    return Table(
        toml_table["name"],
        toml_table["about"],
        toml_table["task"],
        tuple(toml_table["columns"]),
        tuple(rows),
        toml_table.get("percent", False),
    )


def runs() -> dict[str, list[str]]:
    """The tasks that each system has a row in, in the order of the tables."""
    tasks_by_system: dict[str, list[str]] = {}
    for table in (table for paper in PAPERS for table in read(paper)):
        for table_row in table.rows:
            if table_row.system != PEOPLE and table.task not in tasks_by_system.setdefault(
                table_row.system, []
            ):
                tasks_by_system[table_row.system].append(table.task)
    return tasks_by_system


def result_name(task: str, system: str) -> str:
    """What the result of a system on a task is called."""
    return f"{task}_{system}"


def measured_figures(table: Table, table_row: Row) -> tuple[float, ...] | None:
    """Our figures of a row, in the table's unit; None where there is no result that has it."""
    name = result_name(table.task, table_row.system)
    figures = (
        results.read_newest(name)["setups"].get(table_row.setup)
        if results.has_result(name)
        else None
    )
    scale = 100.0 if table.percent else 1.0
    return None if figures is None else tuple(figures[column] * scale for column in table.columns)


def render_paper(paper: str) -> str:
    """All tables of a paper in Markdown."""
    return "\n\n".join("\n".join(_lines(table)) for table in read(paper))


def _lines(table: Table) -> Iterator[str]:
    columns = " / ".join(table.columns)
    yield from (f"### {table.name}", "", table.about, "")
    yield from head("system", "set-up", f"paper: {columns}", "here", "difference")
    for table_row in table.rows:
        yield row(_title(table_row.system), table_row.setup, *_cells(table, table_row))


def _cells(table: Table, table_row: Row) -> tuple[str, str, str]:
    digits = 2 if table.percent else 3
    our_figures = measured_figures(table, table_row)
    paper_cell = _format_values(table_row.figures, f".{digits}f")
    if our_figures is None:
        return paper_cell, explain_missing(table, table_row), ""
    differences = (
        [a - b for a, b in zip(our_figures, table_row.figures, strict=True)]
        if table_row.figures
        else []
    )
    return (
        paper_cell,
        _format_values(our_figures, f".{digits}f"),
        _format_values(differences, f"+.{digits}f"),
    )


def _format_values(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _title(system: str) -> str:
    return "people" if system == PEOPLE else f"`{system}`"


def explain_missing(table: Table, table_row: Row) -> str:
    """Why there is no figure, and the command that makes it."""
    if table_row.system == PEOPLE:
        return "people are not measured"
    entry = SYSTEMS[table_row.system]
    weights = " --weights FILE" if entry.needs and not entry.weights else ""
    return f"{entry.needs or 'a run'}: `--task {table.task} --system {table_row.system}{weights}`"
