"""Tables in text files: CSV with any delimiter, quoted newlines and any line endings."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO, Self, TextIO

from hybrid_search.errors import InputError
from hybrid_search.ingest.column_names import looks_like_header
from hybrid_search.ingest.sources.cell_limit import CELL_LIMIT
from hybrid_search.ingest.sources.records import Record
from hybrid_search.observability import logs

DELIMITERS = (",", ";", "\t", "|")
MAX_CELL = 64 * 1024 * 1024
"""Maximum characters of a cell, and of a line. A larger one comes from an unclosed quote."""
SNIFFED_ROWS = 20

_SEPARATOR_LINE = re.compile(r"sep=(.)\s*$", re.IGNORECASE)
_NOT_UTF8 = re.compile("[\udc80-\udcff]")

OpenBytes = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the table anew, as UTF-8."""


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


class CsvTable:
    """A CSV table, reopened by `open_bytes` for each pass.

    Raises:
        InputError: If the header cannot be read.
    """

    def __init__(self, open_bytes: OpenBytes, delimiter: str) -> None:
        self._open, self._delimiter = open_bytes, delimiter
        with open_bytes() as file:
            lines = _CsvLines(_decode(file))
            cells = next(self._rows(lines), [])
        self.header = _name_columns(_require_utf8(cells)) if cells else ["id", "text"]

    def records(self) -> Iterator[Record]:
        """Yield the rows below the header, each numbered by its first line."""
        with self._open() as file:
            lines = _CsvLines(_decode(file))
            rows = self._rows(lines)
            next(rows, None)
            for cells in rows:
                fault = None
                try:
                    fields = self._read_fields(_require_utf8(cells))
                except InputError as error:
                    fields, fault = {}, str(error)
                if fields or fault:
                    yield Record(lines.row_start, fields, lines.row_bytes, fault)

    def _read_fields(self, cells: list[str]) -> dict[str, str]:
        width = len(self.header)
        if len(cells) < width or any(cells[width:]):
            if any(cells):
                raise InputError(f"the row has {len(cells)} cells, but the header has {width}")
            return {}
        return {name: cell for name, cell in zip(self.header, cells, strict=False) if cell}

    def _rows(self, lines: _CsvLines) -> Iterator[list[str] | InputError]:
        """Yield the cells of each non-blank row, or its error."""
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        while True:
            lines.begin_row()
            try:
                with CELL_LIMIT.lift(MAX_CELL):
                    cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield InputError(_explain(str(error)))
            except InputError as error:
                yield error
            else:
                is_separator_line = lines.row_start == 1 and _SEPARATOR_LINE.match(
                    self._delimiter.join(cells)
                )
                if cells and not is_separator_line:
                    yield cells


def _explain(error: str) -> str:
    """Return what is wrong with a row, in terms of tables rather than of the csv module."""
    if "expected after" in error:
        return "a quote inside a quoted cell stands alone: write it twice"
    if "unexpected end" in error:
        return "a quote is opened and never closed: the rest of the file is in this row"
    if "field limit" in error:
        return f"a cell is over {MAX_CELL} characters long: is a quote never closed?"
    return error


def _name_columns(cells: Sequence[str]) -> list[str]:
    """Return unique column names: missing and repeated names are numbered."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell.strip() or f"column_{number}"
        if name in names:
            logs.log_or_print(
                f"columns {names.index(name) + 1} and {number} of the table have the same name: "
                "the second is read with a number behind it, as in name_2"
            )
            counts = range(2, len(cells) + 2)
            name = next(f"{name}_{count}" for count in counts if f"{name}_{count}" not in names)
        names.append(name)
    return names


def _decode(file: BinaryIO) -> TextIO:
    return io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")


def _require_utf8(cells: list[str] | InputError) -> list[str]:
    if isinstance(cells, InputError):
        raise cells
    for number, cell in enumerate(cells, 1):
        if _NOT_UTF8.search(cell):
            raise InputError(
                f"not UTF-8 in cell {number}, as the file is at its beginning: "
                "name its encoding, as in --encoding windows-1252"
            )
    return cells


class _CsvLines:
    """An iterator of lines for the csv module that keeps the lines of the current row."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._row_lines = file, list[str]()
        self._next_number = self.row_start = 1

    def begin_row(self) -> None:
        """Start a new row with the next line."""
        self._row_lines.clear()
        self.row_start = self._next_number

    @property
    def row_bytes(self) -> bytes:
        """Return the lines of the current row, in UTF-8."""
        return "".join(self._row_lines).encode("utf-8", "surrogateescape")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MAX_CELL)
        if not line:
            raise StopIteration
        self._next_number += 1
        is_whole = len(line) < MAX_CELL or line.endswith(("\n", "\r"))
        self._row_lines.append(line if is_whole else line[:1000])
        if is_whole:
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._file.readline(MAX_CELL)
        raise InputError(f"the line is over {MAX_CELL} characters long")
