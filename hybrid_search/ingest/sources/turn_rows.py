"""``--rows turn``: group all rows with the same id into a call, wherever they are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from hybrid_search.errors import InputError
from hybrid_search.ingest.document_parser import stringify_number
from hybrid_search.ingest.seen_ids import translate_database_errors
from hybrid_search.ingest.sources.json_texts import MAX_LINE_BYTES
from hybrid_search.ingest.sources.read_options import Columns, ReadOptions
from hybrid_search.ingest.sources.records import (
    TURN_KEYS,
    Fields,
    Record,
    count_from_first,
    dump,
    parse_record,
    read_turn_keys,
    take,
)
from hybrid_search.observability import logs
from hybrid_search.text import name_lists

OWN_KEYS = ("text", *TURN_KEYS)


def group_calls(records: Iterator[Record], options: ReadOptions) -> Iterator[Record]:
    """Yield the calls in the order of their first rows, each numbered by that row.

    The turns of a call are sorted by start time if all have one, else they keep the order of their
    rows. A column belongs to calls if its value is the same in all rows of each call, otherwise to
    turns. A row that cannot be read is yielded with its fault.

    All rows are written to a temporary file first, so memory holds one call at a time, of at most
    `MAX_LINE_BYTES`. A full temporary folder raises IndexStoreError.
    """
    # "" is a file that SQLite deletes itself
    with translate_database_errors("rows"), closing(sqlite3.connect("")) as rows:
        rows.execute("CREATE TABLE rows (number INTEGER, call TEXT, data BLOB, fault TEXT)")
        stored = (_store(record, options.columns) for record in records)
        rows.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", stored)
        rows.execute("CREATE INDEX calls ON rows (call, number)")
        turn_columns = _find_turn_columns(rows)
        for first, call, size in rows.execute(
            "SELECT min(number) AS first, call, sum(length(data)) FROM rows "
            "GROUP BY call, CASE WHEN call IS NULL THEN number END ORDER BY first"
        ):
            yield _build_record(rows, first, call, size, turn_columns)


def _store(record: Record, columns: Columns) -> tuple[int, str | None, bytes, str | None]:
    """Return the number of a row, the id of its call, its JSON or raw text, and its fault."""
    record = parse_record(record)
    if record.fields is None:
        return record.number, None, record.raw, record.fault
    raw, fields = record.raw or dump(record.fields), dict(record.fields)
    call = stringify_number(take(fields, columns.get("id", "id")))
    if not isinstance(call, str):
        return record.number, None, raw, "the row has no id of a call"
    names = {key: columns.get(key, key) for key in OWN_KEYS}
    try:
        turn = read_turn_keys({key: take(fields, name) for key, name in names.items()}, names)
    except InputError as error:
        return record.number, None, raw, str(error)
    for key, name in columns.items():
        if key != "id" and key not in OWN_KEYS and (value := take(fields, name)) is not None:
            fields[key] = value
    return record.number, call, dump({"turn": {"text": "", **turn}, "rest": fields}), None


def _find_turn_columns(rows: sqlite3.Connection) -> frozenset[str]:
    """Return the columns whose values differ within a call."""
    turn_columns: set[str] = set()
    current, first = "", dict[str, Any]()
    for call, data in rows.execute(
        "SELECT call, data FROM rows WHERE call IS NOT NULL ORDER BY call, number"
    ):
        fields = json.loads(data)["rest"]
        if call == current:
            keys = first.keys() | fields.keys()
            turn_columns.update(key for key in keys if first.get(key) != fields.get(key))
        else:
            current, first = call, fields
    if turn_columns:
        logs.log_or_print(
            "columns of the turns, as they differ within a call: "
            f"{name_lists.list_names(sorted(turn_columns))}. Conditions and facets are those of "
            "calls, and do not see them"
        )
    return frozenset(turn_columns)


def _build_record(
    rows: sqlite3.Connection, first: int, call: str | None, size: int, turn_columns: frozenset[str]
) -> Record:
    if call is None:
        ((raw, fault),) = rows.execute(
            "SELECT data, fault FROM rows WHERE call IS NULL AND number = ?", (first,)
        )
        return Record(first, raw, fault=fault)
    if size > MAX_LINE_BYTES:
        fault = f"the rows of the call have over {MAX_LINE_BYTES} bytes"
        return Record(first, dump({"id": call}), fault=fault)
    stored = rows.execute("SELECT data FROM rows WHERE call = ? ORDER BY number", (call,))
    document = _build_call(call, [json.loads(data) for (data,) in stored], turn_columns)
    return Record(first, dump(document))


def _build_call(
    call: str, rows: Sequence[Mapping[str, Fields]], turn_columns: frozenset[str]
) -> Fields:
    """Return the document of a call; `turn_columns` of the rest of its rows belong to turns."""
    shared = {key: value for key, value in rows[0]["rest"].items() if key not in turn_columns}
    turns = []
    for row in rows:
        own = {key: value for key, value in row["rest"].items() if key not in shared}
        turns.append({**own, **row["turn"]})
    turns = count_from_first(turns)
    if all(isinstance(turn.get("start_ms"), (int, float)) for turn in turns):
        turns.sort(key=lambda turn: turn["start_ms"])
    return {**shared, "id": call, "turns": turns}
