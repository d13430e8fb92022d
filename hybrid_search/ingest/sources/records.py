"""Documents from rows and objects: renamed keys, speaker lines, times."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from hybrid_search.errors import InputError, show_value
from hybrid_search.ingest.column_names import propose_columns
from hybrid_search.ingest.document_parser import load_object
from hybrid_search.ingest.sources.read_options import Columns, ReadOptions
from hybrid_search.ingest.sources.times import to_milliseconds
from hybrid_search.ingest.types import SourceLine

Fields = dict[str, Any]
"""The keys of a row or an object, with their values."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a table or an object of JSON, numbered from 1."""

    number: int
    raw: bytes = b""
    """The JSON of an object or document, or the source text of anything else."""
    fields: Fields | None = None
    """Its keys and values; None if only `raw` has them."""
    fault: str | None = None
    """Why it could not be read, without a word of its text."""

    def as_line(self, source: str) -> SourceLine:
        """Return the line of `source` with this record, which has a document or a fault."""
        return SourceLine(source, self.number, self.raw, self.fault)


CONTENT = ("text", "turns")
RESERVED = ("id", *CONTENT)
TIMES = ("start", "end")
TURN_KEYS = ("speaker", "start", "end", "start_ms", "end_ms")
"""Keys of a turn besides its text."""

SINCE_1970 = 10**10
"""A larger time of a turn, in milliseconds, counts from 1970; this limit is 115 days."""


def build_record(record: Record, options: ReadOptions) -> Record:
    """Return a record with the JSON of a document, a fault, or what the parser will refuse."""
    if record.fault or (options.keep_objects and record.fields is None):
        return record
    parsed = parse_record(record)
    if parsed.fields is None:
        return record
    try:
        return Record(record.number, dump(build_document(parsed.fields, options)))
    except InputError as error:
        return Record(record.number, record.raw or dump(parsed.fields), None, str(error))


def rebuild_line(line: SourceLine, options: ReadOptions) -> SourceLine:
    """Return a line that was refused before, read again with other `options`."""
    if line.fault:
        return line
    record = build_record(Record(line.number, line.data), options)
    return replace(line, data=record.raw, fault=record.fault)


def build_document(fields: Fields, options: ReadOptions) -> Fields:
    """Return the document in `fields`, with columns mapped to keys; InputError says what is not."""
    document = apply_columns(fields, options.columns) if options.columns else dict(fields)
    if "turns" in document:
        document["turns"] = _load_turns(document["turns"])
    text = document.get("text")
    if options.split_speakers and isinstance(text, str) and not document.get("turns"):
        from hybrid_search.ingest.sources.formats.named_lines import split_speakers

        if turns := split_speakers(text):
            del document["text"]
            document["turns"] = turns
    return document


def apply_columns(fields: Fields, columns: Columns) -> Fields:
    """Return `fields` renamed according to `columns`.

    If a key of turns is named and the document has turns, the named text is the text of a turn;
    without turns the whole document is one turn. Other values under id, text or turns are renamed
    to ``source_id`` and so on.

    Raises:
        InputError: If the id, the text or the turns are not where `columns` say.
    """
    fields = dict(fields)
    turn_columns = {key: columns[key] for key in TURN_KEYS if key in columns}
    has_turns = "turns" in columns or (bool(turn_columns) and isinstance(fields.get("turns"), list))
    if "text" in columns and has_turns:
        turn_columns["text"] = columns["text"]
    own = {
        key: _take_named(fields, key, column)
        for key, column in columns.items()
        if key not in turn_columns
    }
    if has_turns:
        turns = _load_turns(own["turns"] if "turns" in own else fields.pop("turns"))
        if not isinstance(turns, list):
            raise InputError(f"turns are a {type(turns).__name__}, and not a list of objects")
        turns = [_apply_to_turn(turn, turn_columns) for turn in turns]
        own["turns"] = count_from_first(turns) if "start" in turn_columns else turns
    elif turn_columns:  # the text is that of the only turn
        text = own.pop("text") if "text" in own else fields.pop("text", None)
        own["turns"] = [{"text": text, **_take_turn_keys(fields, turn_columns)}]
    own |= {key: own.get(key) for key in CONTENT if own.keys() & {*CONTENT}}
    rest = {
        rename_reserved(key, own, fields): value
        for key, value in fields.items()
        if key not in own or own[key] != value
    }
    return {**rest, **{key: value for key, value in own.items() if value is not None}}


def _take_named(fields: Fields, key: str, column: str) -> Any:
    value = take(fields, column)
    if value is None and key in RESERVED:
        raise InputError(
            f"no key {show_value(column)} for the {key}: name one that is there, "
            f"as in {propose_columns(fields)}",
            f"the keys are {', '.join(sorted(fields))}"[:200],
        )
    return value


def _load_turns(turns: Any) -> Any:
    """Return turns, also those in a table cell with JSON."""
    try:
        return json.loads(turns) if isinstance(turns, str) else turns
    except (ValueError, RecursionError):
        raise InputError("turns are a text, and not a list of objects in JSON") from None


def _apply_to_turn(turn: Any, turn_columns: Mapping[str, str]) -> Any:
    if not isinstance(turn, dict):
        return turn
    rest = dict(turn)
    own = _take_turn_keys(rest, turn_columns)
    return {**rest, **own}


def _take_turn_keys(fields: Fields, turn_columns: Mapping[str, str]) -> Fields:
    own = {key: take(fields, column) for key, column in turn_columns.items()}
    return read_turn_keys(own, turn_columns)


def read_turn_keys(turn: Mapping[str, Any], names: Mapping[str, str]) -> Fields:
    """Return the known keys of a turn from the columns `names`, with times in milliseconds."""
    own = dict(turn)
    for key in TIMES:
        if own.get(key) is not None:
            own[f"{key}_ms"] = to_milliseconds(own[key], names.get(key, key))
        own.pop(key, None)
    return {key: value for key, value in own.items() if value is not None}


def count_from_first(turns: Sequence[Any]) -> list[Any]:
    """Return turns with times since 1970 changed to times since the first turn."""
    timed = [turn for turn in turns if isinstance(turn, dict) and "start_ms" in turn]
    starts = [turn["start_ms"] for turn in timed if isinstance(turn["start_ms"], (int, float))]
    first = min(starts, default=0)
    if len(starts) < len(timed) or first < SINCE_1970:
        return list(turns)
    return [_move_times(turn, first) if isinstance(turn, dict) else turn for turn in turns]


def _move_times(turn: Fields, first: float) -> Fields:
    times = {key: turn.get(key) for key in ("start_ms", "end_ms")}
    moved = {key: time - first for key, time in times.items() if isinstance(time, (int, float))}
    return turn | moved


def rename_reserved(key: str, own: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """Return `key`, or a new name if the document has another value under that name."""
    if key not in own:
        return key
    name = f"source_{key}"
    while name in fields or name in own:
        name = f"source_{name}"
    return name


def find(fields: Fields, path: str) -> Any:
    """Return the value under a dotted key, or None."""
    return take(dict(fields), path)


def take(fields: Fields, path: str) -> Any:
    """Remove and return the value under a dotted key of `fields`, or None."""
    if fields.get(path) is not None:
        return fields.pop(path)
    first, dot, inner_path = path.partition(".")
    inner = fields.get(first)
    if not (dot and isinstance(inner, dict)):
        return None
    rest = dict(inner)  # copy: the original is kept for a refusal
    value = take(rest, inner_path)
    fields[first] = rest
    if not rest:
        del fields[first]
    return value


def dump(fields: Mapping[str, Any]) -> bytes:
    """Return the JSON of a document."""
    return json.dumps(fields).encode()


def clean_fields(fields: Mapping[str, Any]) -> Fields:
    """Return `fields` as JSON values, without missing values; see `to_json_value`."""
    cleaned = ((str(key), to_json_value(value, str(key))) for key, value in fields.items())
    return {key: value for key, value in cleaned if value is not None}


def parse_record(record: Record) -> Record:
    """Return a record with the fields in its JSON, or with a fault if it is not an object."""
    if record.fault or record.fields is not None:
        return record
    try:
        return replace(record, fields=load_object(record.raw))
    except InputError as error:
        return replace(record, fault=str(error))


def to_json_value(value: Any, key: str) -> Any:
    """Return `value` as a JSON value; NaN, NaT and other missing values become None.

    Times become ISO 8601, integral decimals become integers.

    Raises:
        InputError: If `value`, the value of `key`, has a type without a JSON equivalent.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): to_json_value(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        items = list(value)
        are_pairs = all(isinstance(item, tuple) and len(item) == 2 for item in items)
        if isinstance(value, list) and items and are_pairs:  # an Arrow map
            return to_json_value(dict(items), key)
        return [to_json_value(item, key) for item in items]
    if is_missing(value) or type(value) is float:
        return None if is_missing(value) else value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, np.generic) and not isinstance(value, (np.bytes_, np.void)):
        is_time = isinstance(value, np.datetime64)
        return to_json_value((value.astype("datetime64[us]") if is_time else value).item(), key)
    kind = "binary" if isinstance(value, bytes) else f"a {type(value).__name__}"
    raise InputError(
        f"{show_value(key)} is {kind}, which JSON cannot hold: leave the column out, or write it "
        "as text"
    )


def is_missing(value: Any) -> bool:
    """Return whether `value` is a missing value: None, NaN, NaT, or NA of pandas."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")
