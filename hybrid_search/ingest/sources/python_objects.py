"""Documents from Python objects: dicts, data frames and Arrow tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.sources.read_options import Columns, ReadOptions
from hybrid_search.ingest.sources.records import Record, Row, build_row, clean_fields, dump
from hybrid_search.ingest.sources.tables import Table, read_table
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine

SOURCE = "documents"
"""The name of the source in the rejects file."""

CHUNK_ROWS = 1000


class ArrowStream(Protocol):
    """A table with the Arrow interface, such as a data frame of pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a capsule."""
        ...


def read_objects(documents: Any, options: ReadOptions) -> Iterator[SourceLine]:
    """Return documents as source lines.

    Args:
        documents: An iterable of dicts, a data frame of pandas, or an object with
            ``__arrow_c_stream__``, such as an Arrow table or a polars data frame.
        options: How to read them.

    Raises:
        UsageError: If `documents` is something else, or a table without id and text, or one with
            repeated ids.
    """
    if isinstance(documents, (str, bytes, Path, Mapping)):  # iterable, but not of documents
        raise UsageError(
            f"documents must be a list of dicts, and this is a {type(documents).__name__}. "
            "A file of JSON lines is read by `map(json.loads, open(path))`, and any file by "
            "`hybrid-search ingest`; a single document goes into a list"
        )
    table = _as_table(documents)
    if table is None and not isinstance(documents, Iterable):
        raise UsageError(
            f"documents are a {type(documents).__name__}: give a list of dicts, a data frame, or a "
            "table of Arrow"
        )
    try:
        rows = _read_dicts(documents, options) if table is None else read_table(table, options)
    except InputError as error:
        raise UsageError(put_in_python(str(error))) from error
    return (SourceLine(SOURCE, number, data, fault) for number, data, fault in rows)


def put_in_python(message: str) -> str:
    """Replace command line options in a message with Python arguments."""
    message = message.replace("--rows turn", 'rows="turn"')
    message = re.sub(r"--columns (?:([\"'])([^\"']*=.*?)\1|(\S+=[^\s;]+))", _list_columns, message)
    return message.replace("--columns", "columns=")


def _list_columns(option: re.Match[str]) -> str:
    return f"columns={dict(Columns.parse(option[2] or option[3]).of)}"


def _as_table(documents: Any) -> Table | None:
    if hasattr(documents, "iloc") and hasattr(documents, "columns"):
        return _FrameTable(documents)
    if hasattr(documents, "__arrow_c_stream__"):
        from hybrid_search.ingest.sources.arrow_tables import ArrowTable

        return ArrowTable(documents)
    return None


class _FrameTable:
    """A pandas data frame; a named index counts as a column."""

    def __init__(self, frame: Any) -> None:
        has_named_index = any(name is not None for name in frame.index.names)
        self._frame = frame.reset_index() if has_named_index else frame
        self.header = [str(name) for name in self._frame.columns]
        if len({*self.header}) < len(self.header):
            raise UsageError("two columns of the data frame have the same name: rename one")

    def records(self) -> Iterator[Record]:
        """Yield the rows, numbered from 1, without their missing values."""
        for start in range(0, len(self._frame), CHUNK_ROWS):
            chunk = self._frame.iloc[start : start + CHUNK_ROWS].to_dict("records")
            for number, fields in enumerate(chunk, start + 1):
                yield _read_record(number, fields)


def _read_dicts(documents: Iterable[Any], options: ReadOptions) -> Iterator[Row]:
    if options.rows == "turn":
        records = (_read_record(number, item) for number, item in enumerate(documents, 1))
        return group_calls(records, options)
    return (_read_dict(number, item, options) for number, item in enumerate(documents, 1))


def _read_dict(number: int, document: Any, options: ReadOptions) -> Row:
    if options.keep_objects:
        try:
            return number, json.dumps(document, allow_nan=False).encode(), None
        except (TypeError, ValueError):  # a value has to be converted first, or is refused below
            pass
    return build_row(_read_record(number, document), options)


def _read_record(number: int, document: Any) -> Record:
    """Return the record of a dict; it has a fault if it is not a dict, or not valid JSON."""
    if not isinstance(document, Mapping):
        fault = f"not a dict, but a {type(document).__name__}"
        return Record(number, {}, _repr(document), fault)
    try:
        fields = clean_fields(document)
        return Record(number, fields, dump(fields))
    except InputError as error:
        return Record(number, {}, _repr(document), str(error))
    except (TypeError, ValueError, RecursionError) as error:
        return Record(number, {}, _repr(document), f"not JSON: {error}")


def _repr(document: Any) -> bytes:
    return repr(document).encode("utf-8", "backslashreplace")
