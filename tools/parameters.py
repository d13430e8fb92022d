"""Fill what two pages list of a query's parameters: ``python -m tools.parameters``.

They are the table in docs/query.md, and the options in docs/cli.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from textwrap import fill

from benchmarks.markdown import row
from benchmarks.tables import fill_tables
from hybrid_search.parameters import Parameter
from hybrid_search.search.query import PARAMETERS

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = 105
PAGES = (DOCS / "query.md", DOCS / "cli.md")


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


def list_options() -> str:
    """Render the options of ``hybrid-search query`` that are parameters of a query."""
    several = [item for item in PARAMETERS.values() if item.has_several or item.is_conditions]
    words = f"{_name_options(PARAMETERS.values())}. {_name_options(several)} may be repeated."
    return fill(words, COLUMNS, break_on_hyphens=False)


def _name_options(parameters: Iterable[Parameter]) -> str:
    *options, last = (f"`{parameter.option_name}`" for parameter in parameters)
    return f"{', '.join(options)} and {last}"


TABLES = {"query_parameters": list_parameters, "query_options": list_options}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
