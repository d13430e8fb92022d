"""The tables of the three papers beside what was measured here: a row for every system, and where it was not measured, what it needs.

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
    """A system in a set-up; `figures` are the paper's, one for each column, none where the row is ours alone."""

    system: str
    setup: str
    figures: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a paper. `task` is the evaluation that measures it; with `percent` figures are shown times 100."""

    name: str
    about: str
    task: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    percent: bool


def read(paper: str) -> list[Table]:
    """The tables of ``PAPER.toml``."""
    held = tomllib.loads((FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))["tables"]
    return [_table(each) for each in held]


def _table(held: Mapping[str, Any]) -> Table:
    rows = [Row(system, setup, tuple(figures)) for system, setup, *figures in (*held["rows"], *held.get("extra", ()))]
    return Table(held["name"], held["about"], held["task"], tuple(held["columns"]), tuple(rows), held.get("percent", False))


def runs() -> dict[str, list[str]]:
    """The tasks that each system has a row in, in the order of the tables."""
    found: dict[str, list[str]] = {}
    for table in (table for paper in PAPERS for table in read(paper)):
        for each in table.rows:
            if each.system != PEOPLE and table.task not in found.setdefault(each.system, []):
                found[each.system].append(table.task)
    return found


def result(task: str, system: str) -> str:
    """What the result of a system on a task is called."""
    return f"{task}_{system}"


def measured(table: Table, each: Row) -> tuple[float, ...] | None:
    """Our figures of a row, in the table's unit; None where there is no result that has it."""
    name = result(table.task, each.system)
    found = results.newest(name)["setups"].get(each.setup) if results.there(name) else None
    scale = 100.0 if table.percent else 1.0
    return None if found is None else tuple(found[column] * scale for column in table.columns)


def rendered(paper: str) -> str:
    """All tables of a paper in Markdown."""
    return "\n\n".join("\n".join(_lines(table)) for table in read(paper))


def _lines(table: Table) -> Iterator[str]:
    columns = " / ".join(table.columns)
    yield from (f"### {table.name}", "", table.about, "")
    yield from head("system", "set-up", f"paper: {columns}", "here", "difference")
    for each in table.rows:
        yield row(_title(each.system), each.setup, *_cells(table, each))


def _cells(table: Table, each: Row) -> tuple[str, str, str]:
    digits = 2 if table.percent else 3
    ours = measured(table, each)
    theirs = _shown(each.figures, f".{digits}f")
    if ours is None:
        return theirs, missing(table, each), ""
    apart = [a - b for a, b in zip(ours, each.figures, strict=True)] if each.figures else []
    return theirs, _shown(ours, f".{digits}f"), _shown(apart, f"+.{digits}f")


def _shown(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _title(system: str) -> str:
    return "people" if system == PEOPLE else f"`{system}`"


def missing(table: Table, each: Row) -> str:
    """Why there is no figure, and the command that makes it."""
    if each.system == PEOPLE:
        return "people are not measured"
    entry = SYSTEMS[each.system]
    weights = " --weights FILE" if entry.needs and not entry.weights else ""
    return f"{entry.needs or 'a run'}: `--task {table.task} --system {each.system}{weights}`"
