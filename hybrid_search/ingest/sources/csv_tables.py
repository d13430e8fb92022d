"""Tables in text files: CSV with any delimiter, quoted newlines and any line endings."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO, Self, TextIO

from hybrid_search.errors import InputError
from hybrid_search.ingest.column_names import looks_like_header
from hybrid_search.ingest.sources.records import Record
from hybrid_search.ingest.sources.streams import as_text
from hybrid_search.ingest.sources.tables import Table
from hybrid_search.observability import logs

DELIMITERS = (",", ";", "\t", "|")
MAX_CELL = 64 * 1024 * 1024
"""Maximum characters of a cell, and of a line. A larger one comes from an unclosed quote."""
SNIFFED_ROWS = 20

_SEPARATOR_LINE = re.compile(r"sep=(.)\s*$", re.IGNORECASE)
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def looks_like_table(head: bytes) -> bool:
    """Return whether a text starts with a header that has an id and a text, and matching rows."""
    rows = _sniff_rows(head, find_delimiter(head))
    is_even = len({len(row) for row in rows[:-1] or rows}) == 1
    return bool(rows) and is_even and len(rows[0]) > 1 and looks_like_header(rows[0])


def find_delimiter(head: bytes) -> str:
    """Return the delimiter that gives most rows as many cells (at least two) as the first row."""
    first_line = head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()[:1] or [""]
    named = _SEPARATOR_LINE.match(first_line[0])
    return named[1] if named else max(DELIMITERS, key=lambda cut: _rate(_sniff_rows(head, cut)))


def _rate(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    width = len(rows[0]) if rows else 0
    return (sum(len(row) == width for row in rows) if width > 1 else 0), width


def _sniff_rows(head: bytes, delimiter: str) -> list[list[str]]:
    lines = io.StringIO(head.decode("utf-8", "replace").lstrip("\ufeff"), newline="")
    rows: list[list[str]] = []
    with suppress(csv.Error):
        for row in csv.reader(lines, delimiter=delimiter):
            if row and not (not rows and _SEPARATOR_LINE.match(delimiter.join(row))):
                rows.append(row)
            if len(rows) == SNIFFED_ROWS:
                break
    return rows


def open_table(file: BinaryIO, delimiter: str) -> Table:
    """Return the table in a file in UTF-8, which is rewound for each pass."""
    csv.field_size_limit(MAX_CELL)  # of the whole process: by default it is 131,072
    _, cells, _, fault = next(_read_rows(file, delimiter), (0, ["id", "text"], b"", None))
    if fault:
        raise InputError(fault)
    header = _name_columns(cells)
    return Table(header, lambda: _read_records(file, delimiter, header))


def _read_records(file: BinaryIO, delimiter: str, header: Sequence[str]) -> Iterator[Record]:
    """Yield the rows below the header, each numbered by its first line."""
    rows = _read_rows(file, delimiter)
    next(rows, None)
    for number, cells, raw, fault in rows:
        is_fitting = len(cells) >= len(header) and not any(cells[len(header) :])
        if any(cells) and not is_fitting:
            fault = f"the row has {len(cells)} cells, but the header has {len(header)}"
        fields = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
        if fields or fault:
            yield Record(number, raw, None if fault else fields, fault)


Row = tuple[int, list[str], bytes, str | None]
"""The number of the first line of a row, its cells, its lines, and why it cannot be read."""


def _read_rows(file: BinaryIO, delimiter: str) -> Iterator[Row]:
    """Yield all rows but blank ones and a line that names the delimiter."""
    file.seek(0)
    with as_text(file, encoding="utf-8-sig") as text:
        lines = _CsvLines(text)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            number, cells, fault = reader.line_num + 1, list[str](), ""
            lines.begin_row()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = _explain(str(error))
            fault = fault or lines.fault or _find_not_utf8(cells)
            is_separator_line = number == 1 and _SEPARATOR_LINE.match(delimiter.join(cells))
            if fault or (cells and not is_separator_line):
                raw = "".join(lines.row).encode("utf-8", "surrogateescape")
                yield number, [] if fault else cells, raw, fault or None


class _CsvLines:
    """An iterator of lines for the csv module that keeps the lines of the current row."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.begin_row()

    def begin_row(self) -> None:
        """Forget the lines of the row before."""
        self.row, self.fault = list[str](), ""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MAX_CELL)
        if not line:
            raise StopIteration
        is_whole = len(line) < MAX_CELL or line.endswith(("\n", "\r"))
        self.row.append(line if is_whole else line[:1000])
        if is_whole:
            return line
        self.fault = f"the line is over {MAX_CELL} characters long"
        while line and not line.endswith(("\n", "\r")):
            line = self._file.readline(MAX_CELL)
        return "\n"


def _explain(error: str) -> str:
    """Return what is wrong with a row, in terms of tables rather than of the csv module."""
    if "expected after" in error:
        return "a quote inside a quoted cell stands alone: write it twice"
    if "unexpected end" in error:
        return "a quote is opened and never closed: the rest of the file is in this row"
    if "field limit" in error:
        return f"a cell is over {MAX_CELL} characters long: is a quote never closed?"
    return error


def _find_not_utf8(cells: Sequence[str]) -> str:
    """Return the fault of a row with a cell that is not UTF-8, else ""."""
    for number, cell in enumerate(cells, 1):
        if _NOT_UTF8.search(cell):
            return (
                f"not UTF-8 in cell {number}, as the file is at its beginning: "
                "name its encoding, as in --encoding windows-1252"
            )
    return ""


def _name_columns(cells: Sequence[str]) -> list[str]:
    """Return unique column names: missing and repeated names are numbered."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = first_name = cell.strip() or f"column_{number}"
        if name in names:
            logs.log_or_print(
                f"columns {names.index(name) + 1} and {number} of the table have the same name: "
                "the second is read with a number behind it, as in name_2"
            )
        count = 1
        while name in names:
            count += 1
            name = f"{first_name}_{count}"
        names.append(name)
    return names
