"""The head of an index: its spec, and the types of its metadata fields, with checks of both.

The spec is stored twice, with a checksum: any two of the three that agree tell which is right, so
that one damaged row does not make an index unreadable. The types of the fields have a checksum;
they can be made again from the documents' metadata.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import typing
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hybrid_search.backends.embedded import schema
from hybrid_search.backends.types import SCHEMA, DamagedRowError, Fault, IndexSpec
from hybrid_search.errors import DamagedIndexError, InputError
from hybrid_search.text import window_policy
from hybrid_search.text.filters import new_fields
from hybrid_search.text.types import Document

_log = logging.getLogger(__name__)

SPEC, SPEC_COPY, SPEC_CHECKSUM = "spec", "spec_copy", "spec_checksum"
"""The settings that hold the spec as JSON, the same again, and its CRC-32 in decimal digits."""

FIELDS_CHECKSUM = "fields_checksum"
"""The setting that holds the CRC-32 of the types of all fields, in decimal digits.

There is none as long as no document has had a field.
"""

CHANGED_SPEC = "its record of the model and policy is damaged in one of its copies"
CHANGED_FIELDS = "the types of its metadata fields are not those that were written"


# The spec


def read_spec(connection: sqlite3.Connection, path: Path) -> IndexSpec | None:
    """Return the spec of the index at `path`, or None if none has been written yet.

    One that is damaged in more than one place is a DamagedIndexError.
    """
    if not schema.has_table(connection, "settings"):
        return None  # its writer was killed before it had created the tables
    texts = _read_spec_rows(connection)
    return parse_spec(_choose_spec(texts, path), path) if texts else None


def _read_spec_rows(connection: sqlite3.Connection) -> dict[str, object]:
    query = "SELECT name, value FROM settings WHERE name IN (?, ?, ?)"
    return dict(connection.execute(query, (SPEC, SPEC_COPY, SPEC_CHECKSUM)))


def _choose_spec(texts: Mapping[str, object], path: Path) -> object:
    """Return the text of the spec that agrees with another one, or with the checksum."""
    candidates = [texts.get(name) for name in (SPEC, SPEC_COPY)]
    for text in candidates:
        if isinstance(text, str) and _compute_checksum(text) == texts.get(SPEC_CHECKSUM):
            return text
    if candidates[0] == candidates[1]:
        return candidates[0]
    raise DamagedIndexError(_describe_unreadable(path, "it is damaged in more than one place"))


def _compute_checksum(text: str) -> str:
    return str(zlib.crc32(text.encode(errors="surrogatepass")))


def parse_spec(text: object, path: Path) -> IndexSpec:
    """Return the spec that an index recorded as JSON.

    Raises:
        DamagedIndexError: If it is damaged.
    """
    try:
        spec = IndexSpec(**json.loads(str(text)))
        _check_types(spec)
        window_policy.parse(spec.policy)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedIndexError(_describe_unreadable(path, str(error))) from error
    return spec


def _describe_unreadable(path: Path, why: str) -> str:
    return (
        f"{path} is damaged: its record of the model and policy cannot be read ({why}). "
        "Restore it from a backup, or delete the index and ingest again"
    )


def _check_types(spec: IndexSpec) -> None:
    for name, kind in typing.get_type_hints(IndexSpec).items():
        value = getattr(spec, name)
        if type(value) is not kind or value in ("", 0):
            raise ValueError(f"{name} is {value!r}")
    if spec.schema != SCHEMA:
        raise ValueError(f"schema is {spec.schema}")


def write_spec(connection: sqlite3.Connection, spec: IndexSpec) -> None:
    """Record the spec of the index, in place of an earlier one."""
    text = json.dumps({name: getattr(spec, name) for name in IndexSpec.__slots__})
    rows = ((SPEC, text), (SPEC_COPY, text), (SPEC_CHECKSUM, _compute_checksum(text)))
    placeholders = ", ".join(["(?, ?)"] * len(rows))
    values = [value for row in rows for value in row]
    connection.execute(f"INSERT OR REPLACE INTO settings VALUES {placeholders}", values)


# The types of the metadata fields


def read_fields(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the metadata fields: dotted name -> type.

    If they are not those that were written, the error is a DamagedIndexError.
    """
    with schema.read_transaction(connection):
        fields = dict(connection.execute("SELECT name, type FROM fields ORDER BY name"))
        if not _are_as_written(connection, fields):
            schema.raise_damage(connection, CHANGED_FIELDS)
    return fields


def _are_as_written(connection: sqlite3.Connection, fields: Mapping[object, object]) -> bool:
    query = "SELECT value FROM settings WHERE name = ?"
    row = connection.execute(query, (FIELDS_CHECKSUM,)).fetchone()
    is_text = all(type(text) is str for text in (*fields, *fields.values()))
    if row is None:  # no document has had a field yet
        return not fields
    return is_text and bool(row == (_compute_fields_checksum(fields),))


def _compute_fields_checksum(fields: Mapping[Any, Any]) -> str:
    return _compute_checksum(json.dumps(sorted(fields.items())))


def learn_fields(connection: sqlite3.Connection, document: Document) -> None:
    """Record the types of the fields of a document's metadata.

    If one has another type in another document, InputError is raised and nothing is recorded.
    """
    find_user = partial(_find_field_user, connection, document.id)
    fields = read_fields(connection)
    if new := new_fields(fields, document.metadata, find_user, can_free=True):
        connection.executemany("INSERT OR REPLACE INTO fields VALUES (?, ?)", new.items())
        _write_checksum(connection, fields | new)


def _find_field_user(
    connection: sqlite3.Connection, except_id: str, name: str, kind: str
) -> str | None:
    """Return the id of another document that has a value of a field, or in an object of it."""
    test, values = "name = ?", [name]
    if kind == "object":  # "/" is the character after the dot
        test, values = "name > ? AND name < ?", [f"{name}.", f"{name}/"]
    row = connection.execute(
        f"SELECT id FROM metadata JOIN documents USING (document) WHERE {test} AND id != ? LIMIT 1",
        (*values, except_id),
    ).fetchone()
    return str(row[0]) if row else None


def write_fields(connection: sqlite3.Connection, fields: Mapping[str, str]) -> None:
    """Record the types of all fields, in place of what was there."""
    connection.execute("DELETE FROM fields")
    connection.executemany("INSERT INTO fields VALUES (?, ?)", fields.items())
    _write_checksum(connection, fields)


def _write_checksum(connection: sqlite3.Connection, fields: Mapping[str, str]) -> None:
    values = (FIELDS_CHECKSUM, _compute_fields_checksum(fields))
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", values)


def collect_fields(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the types of the fields that documents have now, from the metadata of all of them.

    Raises:
        DamagedRowError: If the metadata of a document cannot be read.
    """
    fields: dict[str, str] = {}
    for document_id, metadata in connection.execute("SELECT id, metadata FROM documents"):
        try:
            fields |= new_fields(fields, json.loads(metadata))
        except (ValueError, TypeError, AttributeError, RecursionError, InputError) as error:
            index = schema.index_name(connection)
            raise DamagedRowError(index, document_id, "the metadata") from error
    return fields


# Both


def mend(connection: sqlite3.Connection, path: Path) -> None:
    """Write a damaged copy of the spec again."""
    spec, texts = read_spec(connection, path), _read_spec_rows(connection)
    if spec and not _agree(texts):
        _log.warning("index %r: %s; mended", schema.index_name(connection), CHANGED_SPEC)
        write_spec(connection, spec)


def find_faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    """Yield what is damaged of both, also where a query can still read it."""
    texts = _read_spec_rows(connection)
    if texts and not _agree(texts):
        yield Fault("file", CHANGED_SPEC)
    try:
        read_fields(connection)
    except DamagedIndexError:
        yield Fault("file", CHANGED_FIELDS)


def _agree(texts: Mapping[str, object]) -> bool:
    spec = texts.get(SPEC)
    expected = (spec, isinstance(spec, str) and _compute_checksum(spec))
    return (texts.get(SPEC_COPY), texts.get(SPEC_CHECKSUM)) == expected
