"""Fill the table of a query's parameters in docs/query.md: ``python -m tools.parameters``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.markdown import row
from benchmarks.tables import fill_tables
from hybrid_search.search.query import PARAMETERS

PAGE = Path(__file__).parents[1] / "docs" / "query.md"


def list_parameters() -> str:
    """Render the keyword parameters of `hybrid_search.query`; sections of the page say more."""
    lines = [row("parameter", "meaning"), row("---", "---")]
    for name, parameter in PARAMETERS.items():
        if parameter.see:
            words = replace(parameter, more="").describe()
            lines.append(row(f"`{name}`", f"{words} ([more](#{parameter.see}))"))
        else:
            lines.append(row(f"`{name}`", parameter.describe()))
    return "\n".join(lines)


TABLES = {"query_parameters": list_parameters}

if __name__ == "__main__":
    PAGE.write_text(fill_tables(PAGE.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
