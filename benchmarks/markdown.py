"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def row(*cells: Any) -> str:
    """Render one row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(first: str, *column_names: str) -> list[str]:
    """Render the heading of a table: a column of names, then right-aligned columns of figures."""
    return [row(first, *column_names), row("---", *["---:"] * len(column_names))]


def table(
    first: str, columns: Iterable[str], names: Iterable[str], cells: Callable[[str], Iterable[Any]]
) -> str:
    """Render a table: a heading, and for each of `names` a row of its `cells`."""
    lines = head(first, *columns)
    return "\n".join([*lines, *[row(name, *cells(name)) for name in names]])
