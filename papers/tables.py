"""The papers' tables beside what was measured here: ``python -m papers.tables`` fills the page.

A row for every system, a column for every set-up. The figures that the papers print are in
``published/*.toml``.
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
    """Yield what is measured, then a row for each system with a column for each set-up."""
    figures = f"`--task {table.task}`: {', '.join(table.columns)}."
    yield from (f"### {table.name}", "", f"{table.about} {figures}", "")
    setups = list(dict.fromkeys(table_row.setup for table_row in table.rows))
    yield from head("system", *setups)
    rows = {(table_row.system, table_row.setup): table_row for table_row in table.rows}
    for system in dict.fromkeys(table_row.system for table_row in table.rows):
        cells = [_cell(table, rows.get((system, setup))) for setup in setups]
        yield row("people" if system == PEOPLE else f"`{system}`", *cells)


def _cell(table: Table, table_row: Row | None) -> str:
    """Return the paper's figures, then ours in bold."""
    if table_row is None:
        return ""
    ours = measured_figures(table, table_row)
    parts = (_format_values(table, table_row.figures), f"**{_format_values(table, ours or ())}**")
    return "; ".join(part for part in parts if part not in ("", "****"))


def _format_values(table: Table, values: Sequence[float]) -> str:
    form = ".2f" if table.percent else ".3f"
    return ", ".join(format(value, form) for value in values)


def render_missing() -> str:
    """Render what each system takes that was measured on no task; of a reader, its encoder."""
    missing = {
        system.removeprefix("reader-"): ""
        for system, tasks in tasks_by_system().items()
        if not any(read_measured(task, system) for task in tasks)
    }
    rows = [row(system, explain_missing(system)) for system in missing]
    return "\n".join([*head("system", "takes"), *rows])


def explain_missing(system: str) -> str:
    """Name the weights that a system loads by default, or say what it takes."""
    entry = SYSTEMS[system]
    return f"`{entry.weights}`" if entry.weights else entry.needs


TABLES: dict[str, Callable[[], str]] = {
    **benchmark_tables.TABLES,
    "missing": render_missing,
    **{f"{paper}_paper": partial(render_paper, paper) for paper in PAPERS},
}


def fill_tables(text: str) -> str:
    """Return `text` with every table between its markers rendered anew."""
    return benchmark_tables.fill_tables(text, TABLES)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
