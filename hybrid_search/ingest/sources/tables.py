"""Read rows of tables as documents: the mapping of columns to keys, and CSV and TSV files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.sources.cell_limit import CELL_LIMIT

Row = tuple[int, bytes, str | None]
"""(line number from 1, JSON of a document, fault). With a fault the bytes are the raw row.

A fault quotes nothing of the row, nor of the header: a table without one begins with its data.
"""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
MAX_CELL = 64 * 1024 * 1024
"""Characters of a cell at most. A larger one is a quote that nobody closed."""

_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Columns:
    """The column of each named key of a document; every other column is the key of its own name."""

    of: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the mapping in ``KEY=COLUMN,KEY=COLUMN``.

        A pair whose column has a comma in its name stands in double quotes.

        Raises:
            UsageError: If `text` is not of this form, or has a key twice.
        """
        pairs = [pair.partition("=") for pair in next(csv.reader([text]), [])]
        keys = [key.strip() for key, _, _ in pairs]
        are_pairs = all(equals and key.strip() for key, equals, _ in pairs)
        if not are_pairs or len(set(keys)) < len(keys):
            raise UsageError(
                f"--columns takes KEY=COLUMN,... with each key once, as in id=call_id,text=body, "
                f"not {text!r}"
            )
        return cls({key: column for key, (_, _, column) in zip(keys, pairs, strict=True)})

    def keys(self, header: Sequence[str]) -> list[str]:
        """Return the key that each column of `header` gives.

        Raises:
            InputError: If a column is missing, or two would give the same key.
        """
        missing = [column for column in self.of.values() if column not in header]
        if missing:
            raise InputError(
                f"no column {missing[0]!r}, which --columns names, is among the {len(header)} of "
                "the table: name one that is"
            )
        keys_by_column = {column: key for key, column in self.of.items()}
        keys = [keys_by_column.get(column, column) for column in header]
        duplicate = next((number for number, key in enumerate(keys) if key in keys[:number]), None)
        if duplicate is not None:
            raise InputError(
                f"columns {keys.index(keys[duplicate]) + 1} and {duplicate + 1} give the same key: "
                "name another for one of them, as in --columns KEY=COLUMN"
            )
        if "id" not in keys or not {"text", "turns"} & set(keys):
            raise InputError(
                f"no columns id and text are among the {len(header)} of the table: "
                "say which they are, as in --columns id=call_id,text=body"
            )
        return keys


SAME = Columns()
"""Every column gives the key of its own name."""


def document(keys: Iterable[str], cells: Iterable[Any]) -> bytes:
    """Return the JSON of a document, without the keys whose cell is empty."""
    values = {
        key: cell for key, cell in zip(keys, cells, strict=True) if cell is not None and cell != ""
    }
    return json.dumps(
        {**values, "id": stringify_id(values["id"])} if "id" in values else values
    ).encode()


def stringify_id(id: Any) -> Any:
    """Return an integer id as text, because tables and databases number their rows."""
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else id


def rows(lines: Iterator[Row], columns: Columns, delimiter: str) -> Iterator[Row]:
    """Yield the rows below the header, each numbered by the line that it begins in.

    If the header does not fit `columns`, it is the only row, with a fault.
    """
    csv_lines = _CsvLines(lines)
    cell_rows = _cells(csv_lines, delimiter)
    try:
        keys = columns.keys(_require_utf8(next(cell_rows, ["id", "text"])))
    except InputError as error:
        yield csv_lines.row_start, csv_lines.row_bytes, str(error)
        return
    for cells in cell_rows:
        try:
            row: Row = (
                csv_lines.row_start,
                document(keys, _require_width(keys, _require_utf8(cells))),
                None,
            )
        except InputError as error:
            row = csv_lines.row_start, csv_lines.row_bytes, str(error)
        yield row


def _cells(csv_lines: _CsvLines, delimiter: str) -> Iterator[list[str] | InputError]:
    """Yield the cells of each row that is not blank, or the error of the row."""
    reader = csv.reader(csv_lines, delimiter=delimiter, strict=True)
    while True:
        csv_lines.begin_row()
        try:
            with CELL_LIMIT.lift(MAX_CELL):
                cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, InputError) as error:
            yield InputError(str(error))
        else:
            if cells:
                yield cells


def _require_utf8(cells: list[str] | InputError) -> list[str]:
    if isinstance(cells, InputError):
        raise cells
    for number, cell in enumerate(cells, 1):
        if _NOT_UTF8.search(cell):
            raise InputError(f"not UTF-8 in cell {number}")
    return cells


def _require_width(keys: Sequence[str], cells: list[str]) -> list[str]:
    if len(cells) != len(keys):
        raise InputError(f"the row has {len(cells)} cells, but the header has {len(keys)}")
    return cells


class _CsvLines:
    """Iterates over lines as the csv module needs them, and keeps the raw lines of the row."""

    def __init__(self, lines: Iterator[Row]) -> None:
        self._lines, self._row_lines = lines, list[bytes]()
        self._next_number = self.row_start = 1

    def begin_row(self) -> None:
        """Begin a new row with the next line."""
        self._row_lines.clear()
        self.row_start = self._next_number

    @property
    def row_bytes(self) -> bytes:
        """Return the raw bytes of the row so far."""
        return b"".join(self._row_lines)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        number, data, fault = next(self._lines)
        self._next_number = number + 1
        self._row_lines.append(data)
        if fault:
            raise InputError(fault)
        return data.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")
