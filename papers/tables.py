"""The papers' tables beside what was measured here: ``python -m papers.tables`` fills the page.

A row for every system, and where it was not measured, what it needs. The figures that the papers
print are in ``published/*.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks import tables as benchmark_tables
from benchmarks.markdown import head, row
from papers import significance
from papers.measured import read_measured
from papers.systems.registry import SYSTEMS

FOLDER = Path(__file__).parent / "published"
PAPERS = ("slice", "pic", "mcphrasy")
PAGES = [results.ROOT.parent / "docs" / "papers.md"]

PEOPLE = "people"
"""A row that no system can be measured for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system in a set-up, with the paper's figures.

    One figure for each column; none where the row is ours alone.
    """

    system: str
    setup: str
    figures: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a paper.

    `task` names the evaluation that measures it; with `percent` figures are shown times 100.
    """

    name: str
    about: str
    task: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    percent: bool


def read(paper: str) -> list[Table]:
    """Read the tables of ``PAPER.toml``."""
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


def tasks_by_system() -> dict[str, list[str]]:
    """Return the tasks in which each system has a row, in the order of the tables."""
    tasks: dict[str, list[str]] = {}
    for table in (table for paper in PAPERS for table in read(paper)):
        for system in (table_row.system for table_row in table.rows):
            if system != PEOPLE and table.task not in tasks.setdefault(system, []):
                tasks[system].append(table.task)
    return tasks


def measured_figures(table: Table, table_row: Row) -> tuple[float, ...] | None:
    """Return our figures of a row in the table's unit, or None if they were not measured."""
    result = read_measured(table.task, table_row.system)
    figures = result["setups"].get(table_row.setup) if result else None
    if figures is None:
        return None
    scale = 100.0 if table.percent else 1.0
    return tuple(figures[column] * scale for column in table.columns)


def render_paper(paper: str) -> str:
    """Render all tables of a paper in Markdown."""
    return "\n\n".join("\n".join(_lines(table)) for table in read(paper))


def _lines(table: Table) -> Iterator[str]:
    columns = " / ".join(table.columns)
    yield from (f"### {table.name}", "", table.about, "")
    yield from head("system", "set-up", f"paper: {columns}", "here", "difference")
    for table_row in table.rows:
        yield row(_title(table_row.system), table_row.setup, *_cells(table, table_row))


def _cells(table: Table, table_row: Row) -> tuple[str, str, str]:
    """Return the paper's figures, ours (or what they take), and the differences."""
    digits = 2 if table.percent else 3
    paper_figures, our_figures = table_row.figures, measured_figures(table, table_row)
    paper_cell = _format_values(paper_figures, f".{digits}f")
    if our_figures is None:
        return paper_cell, explain_missing(table, table_row), ""
    our_cell = _format_values(our_figures, f".{digits}f")
    if not paper_figures:
        return paper_cell, our_cell, ""
    differences = [a - b for a, b in zip(our_figures, paper_figures, strict=True)]
    return paper_cell, our_cell, _format_values(differences, f"+.{digits}f")


def _format_values(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _title(system: str) -> str:
    return "people" if system == PEOPLE else f"`{system}`"


def explain_missing(table: Table, table_row: Row) -> str:
    """Say why a row has no figure here, and which options make it."""
    if table_row.system == PEOPLE:
        return "people are not measured"
    entry = SYSTEMS[table_row.system]
    weights = " --weights FILE" if entry.needs and not entry.weights else ""
    return f"{entry.needs or 'a run'}: `--task {table.task} --system {table_row.system}{weights}`"


TABLES: dict[str, Callable[[], str]] = {
    **benchmark_tables.TABLES,
    "significance": significance.render_table,
    **{f"{paper}_paper": partial(render_paper, paper) for paper in PAPERS},
}


def fill_tables(text: str) -> str:
    """Return `text` with every table between its markers rendered anew."""
    return benchmark_tables.fill_tables(text, TABLES)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
