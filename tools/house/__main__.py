"""Print the counts of every top folder, or with `--list` each place that breaks a limit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tools.house import report
from tools.house.report import Counts

HEADER = (
    "folder",
    "files",
    f"under {report.SMALL_MODULE_LINES} lines",
    "lines",
    "of code",
    "classes",
    "protocols",
    "filler names %",
    "functions no verb",
    f"lines > {report.LINE_COLUMNS}",
    f"statements > {report.STATEMENT_OPERATIONS} ops",
    f"comprehensions > {report.COMPREHENSION_DEPTH} deep",
    "body median / p90 / max",
    "longest module",
    f"summaries > {report.SUMMARY_WORDS} words",
)


def main() -> None:
    """Read the command line and print the table or the list."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout to count")
    parser.add_argument("--list", action="store_true", help="each place that breaks a limit")
    parser.add_argument("folders", nargs="*", default=report.FOLDERS, help="top folders")
    options = parser.parse_args()
    folders = [options.root / name for name in options.folders if (options.root / name).exists()]
    print("\n".join(_violations(folders) if options.list else _table(folders)))


def _violations(folders: list[Path]) -> Iterator[str]:
    for folder in folders:
        top_folder = next((name for name in report.FOLDERS if name in folder.parts), "")
        rules = (report.filler_names, *report.rules_of(top_folder))
        for file in report.read_folder(folder):
            for rule in rules:
                yield from map(str, rule(file))


def _table(folders: list[Path]) -> Iterator[str]:
    yield _row(HEADER)
    yield _row(["---"] + ["---:"] * (len(HEADER) - 1))
    for folder in folders:
        yield _row([folder.name, *_cells(report.count_folder(folder))])


def _cells(counts: Counts) -> list[str]:
    body = f"{counts.median_body:g} / {counts.ninth_decile_body:g} / {counts.longest_body}"
    sizes = (counts.files, counts.small_modules, counts.lines, counts.code_lines)
    numbers = (counts.wide_lines, counts.dense_statements, counts.deep_comprehensions)
    return [
        *map(str, sizes),
        str(counts.classes),
        str(counts.protocols),
        f"{counts.filler_percent:.1f}",
        str(counts.participles),
        *map(str, numbers),
        body,
        str(counts.longest_module),
        str(counts.long_summaries),
    ]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
