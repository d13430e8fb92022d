"""Tables in Markdown."""

from __future__ import annotations

from typing import Any


def row(*cells: Any) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(first: str, *column_names: str) -> list[str]:
    """The heading of a table: a column of names, and columns of figures."""
    return [row(first, *column_names), row("---", *["---:"] * len(column_names))]
