"""Fill the tables of a query's parameters in the documentation: ``python -m tools.parameters``."""

from __future__ import annotations

from pathlib import Path

from benchmarks.markdown import row
from benchmarks.tables import fill_tables
from hybrid_search.search.query import PARAMETERS

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("query.md", "cli.md")]


def list_parameters() -> str:
    """Render the keyword parameters of `hybrid_search.query`."""
    lines = [row("parameter", "meaning"), row("---", "---")]
    for name, parameter in PARAMETERS.items():
        link = f" ([more](#{parameter.see}))" if parameter.see else ""
        lines.append(row(f"`{name}`", f"{parameter.describe()}{link}"))
    return "\n".join(lines)


def list_options() -> str:
    """Render the options of the command ``query`` that are parameters."""
    lines = [row("option", "meaning", "default"), row("---", "---", "---")]
    for parameter in PARAMETERS.values():
        default = parameter.default
        shown = "" if default in (None, False, ()) else f"`{default}`"
        repeated = "; may be repeated" if parameter.has_several else ""
        meaning = parameter.words.removesuffix(".") + repeated
        lines.append(row(f"`{parameter.option_name}`", meaning, shown))
    return "\n".join(lines)


TABLES = {"query_parameters": list_parameters, "query_options": list_options}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
