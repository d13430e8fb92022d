"""Rows of tables as documents: which column gives which key, and the reading of CSV and TSV."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hybrid_search.errors import InputError, UsageError

Row = tuple[int, bytes, str | None]
"""Number from 1, the document as JSON, and why it is none: then the bytes are the row as it stands in the source."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
MAX_CELL = 64 * 1024 * 1024
"""Characters. A larger cell is a quote that nobody closed."""

_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column gives which key of a document, where the two have different names. All other columns keep theirs."""

    of: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``KEY=COLUMN,KEY=COLUMN``; a column with a comma in its name stands in double quotes with its key. Raises UsageError."""
        pairs = [each.partition("=") for each in next(csv.reader([text]), [])]
        keys = [key.strip() for key, _, _ in pairs]
        if not all(equals and key.strip() for key, equals, _ in pairs) or len(set(keys)) < len(keys):
            raise UsageError(f"--columns takes KEY=COLUMN,... with each key once, as in id=call_id,text=body, and {text!r} is not that")
        return cls({key: column for key, (_, _, column) in zip(keys, pairs, strict=True)})

    def keys(self, header: Sequence[str]) -> list[str]:
        """The key that each column of `header` gives. Raises InputError where a column is missing, or two would give the same key."""
        missing = [column for column in self.of.values() if column not in header]
        if missing:
            raise InputError(f"no column {missing[0]!r}, which --columns names: the columns are {', '.join(map(repr, header))}")
        named = {column: key for key, column in self.of.items()}
        keys = [named.get(column, column) for column in header]
        twice = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
        if twice is not None:
            raise InputError(f"two columns give {twice!r}: name another key for one of them, as in --columns KEY={twice}")
        if "id" not in keys or not {"text", "turns"} & set(keys):
            raise InputError(f"no columns id and text among {', '.join(map(repr, header))}: say which they are, as in --columns id=call_id,text=body")
        return keys


SAME = Columns()
"""Every column gives the key of its own name."""


def document(keys: Iterable[str], cells: Iterable[Any]) -> bytes:
    """The JSON of a document, without the keys whose cell is empty."""
    given = {key: cell for key, cell in zip(keys, cells, strict=True) if cell is not None and cell != ""}
    return json.dumps({**given, "id": worded(given["id"])} if "id" in given else given).encode()


def worded(id: Any) -> Any:
    """An id that is an integer, as text: tables and databases number their rows."""
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else id


def rows(lines: Iterator[Row], columns: Columns, delimiter: str) -> Iterator[Row]:
    """The rows below the header, each numbered by the line that it begins in. A header that does not fit `columns` is the one row, with its fault."""
    texts = _Texts(lines)
    found = _cells(texts, delimiter)
    try:
        keys = columns.keys(_good(next(found, ["id", "text"])))
    except InputError as error:
        yield texts.began, texts.taken, str(error)
        return
    for cells in found:
        try:
            row: Row = texts.began, document(keys, _fitting(keys, _good(cells))), None
        except InputError as error:
            row = texts.began, texts.taken, str(error)
        yield row


def _cells(texts: _Texts, delimiter: str) -> Iterator[list[str] | InputError]:
    """The cells of each row that is not blank, or what is wrong with it."""
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    while True:
        texts.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, InputError) as error:
            yield InputError(str(error))
        else:
            if cells:
                yield cells


def _good(cells: list[str] | InputError) -> list[str]:
    if isinstance(cells, InputError):
        raise cells
    for number, cell in enumerate(cells, 1):
        if found := _NOT_UTF8.search(cell):
            raise InputError(f"not UTF-8: byte 0x{ord(found[0]) - 0xDC00:02x} in cell {number}")
    return cells


def _fitting(keys: Sequence[str], cells: list[str]) -> list[str]:
    if len(cells) != len(keys):
        raise InputError(f"the row has {len(cells)} cells, and the header has {len(keys)}")
    return cells


class _Texts:
    """Lines as the csv module wants them, one at a time; those of the row at hand are kept as they were."""

    def __init__(self, lines: Iterator[Row]) -> None:
        self._lines, self._held = lines, list[bytes]()
        self._next = self.began = 1

    def begin(self) -> None:
        """A new row begins in the next line."""
        self._held.clear()
        self.began = self._next

    @property
    def taken(self) -> bytes:
        """The row so far."""
        return b"".join(self._held)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        number, data, fault = next(self._lines)
        self._next = number + 1
        self._held.append(data)
        if fault:
            raise InputError(fault)
        return data.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")
