"""Documents from Python objects: dicts, data frames and Arrow tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.sources.read_options import ReadOptions, parse_columns
from hybrid_search.ingest.sources.records import Record, build_record, clean_fields, dump
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

    They are an iterable of dicts, a data frame of pandas, or an object with ``__arrow_c_stream__``,
    such as an Arrow table or a polars data frame.

    Raises:
        UsageError: If they are something else, or a table without id and text, or one with
            repeated ids.
    """
    if isinstance(documents, (str, bytes, Path, Mapping)):  # iterable, but not of documents
        raise UsageError(
            f"documents must be a list of dicts, and this is a {type(documents).__name__}. "
            "A file of JSON lines is read by `map(json.loads, open(path))`, and any file by "
            "`hybrid-search ingest`; a single document goes into a list"
        )
    table: Table | None = None
    if hasattr(documents, "iloc") and hasattr(documents, "columns"):
        table = _as_frame_table(documents)
    elif hasattr(documents, "__arrow_c_stream__"):
        from hybrid_search.ingest.sources import arrow_tables

        table = arrow_tables.as_table(documents)
    elif not isinstance(documents, Iterable):
        raise UsageError(
            f"documents are a {type(documents).__name__}: give a list of dicts, a data frame, or a "
            "table of Arrow"
        )
    try:
        records = _read_dicts(documents, options) if table is None else read_table(table, options)
    except InputError as error:
        raise UsageError(put_in_python(str(error))) from error
    return (record.as_line(SOURCE) for record in records)


def put_in_python(message: str) -> str:
    """Replace command line options in a message with Python arguments."""
    message = message.replace("--rows turn", 'rows="turn"')

    def list_columns(option: re.Match[str]) -> str:
        return f"columns={dict(parse_columns(option[2] or option[3]))}"

    message = re.sub(r"--columns (?:([\"'])([^\"']*=.*?)\1|(\S+=[^\s;]+))", list_columns, message)
    return message.replace("--columns", "columns=")


def _as_frame_table(frame: Any) -> Table:
    """Return a pandas data frame as a table; a named index counts as a column."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    header = [str(name) for name in frame.columns]
    if len({*header}) < len(header):
        raise UsageError("two columns of the data frame have the same name: rename one")
    starts = range(0, len(frame), CHUNK_ROWS)

    def read() -> Iterator[Record]:
        chunks = (frame.iloc[start : start + CHUNK_ROWS].to_dict("records") for start in starts)
        return map(_read_dict, count(1), chain.from_iterable(chunks))

    return Table(header, read)


def _read_dicts(documents: Iterable[Any], options: ReadOptions) -> Iterator[Record]:
    if options.rows == "turn":
        return group_calls(map(_read_dict, count(1), documents), options)
    read = _dump_dict if options.keep_objects else _read_dict
    return (build_record(read(*item), options) for item in enumerate(documents, 1))


def _dump_dict(number: int, document: Any) -> Record:
    try:
        return Record(number, json.dumps(document, allow_nan=False).encode())
    except (TypeError, ValueError):  # a value has to be converted first, or is refused
        return _read_dict(number, document)


def _read_dict(number: int, document: Any) -> Record:
    """Return the record of a dict; it has a fault if it is not a dict, or not valid JSON."""
    try:
        if not isinstance(document, Mapping):
            raise InputError(f"not a dict, but a {type(document).__name__}")
        fields = clean_fields(document)
        return Record(number, dump(fields), fields)
    except InputError as error:
        fault = str(error)
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"not JSON: {error}"
    return Record(number, repr(document).encode("utf-8", "backslashreplace"), fault=fault)
