"""Copies the documents of a damaged file that can still be read into a new one.

A page of SQLite that cannot be read hides all rows on it and, if it leads to other pages, theirs.
So rows are listed from either side of such a place, and then taken one by one. Indexes on them are
not asked: they may be what is damaged. What is copied is what was stored, with its checksums; what
does not fit them is still told by `verify`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from hybrid_search.backends.embedded import head, schema, value_sums
from hybrid_search.backends.types import IndexSpec, Salvage
from hybrid_search.errors import DamagedIndexError, InputError
from hybrid_search.text.filters import new_fields

MAX_GAP = 100_000
"""How many rows are looked for beyond a place that cannot be read, one by one."""

SAVEPOINT = "before_the_copy"

Row = tuple[Any, ...]


def read_spec(path: Path) -> IndexSpec:
    """Return the spec of a damaged index.

    Raises:
        DamagedIndexError: If it cannot be read, and so nothing can.
    """
    with schema.translate_errors(path, _describe_end):
        connection, _ = schema.connect_reader(path)
        with closing(connection):
            spec = head.read_spec(connection, path)
    if spec is None:
        raise DamagedIndexError(_describe_end(path, "its record of the model is missing"))
    return spec


def _describe_end(path: Path, why: str) -> str:
    return (
        f"{path} is damaged, and nothing of it can be saved ({why}): restore it from a backup, or "
        f"ingest again after hybrid-search delete --index {path.stem} --yes"
    )


def copy_documents(old: sqlite3.Connection, new: sqlite3.Connection) -> Salvage:
    """Copy every whole document of `old` into the tables of `new`, which are empty.

    Returns:
        How many were copied, and the ids of those that are lost.
    """
    copier = _Copier(old, new)
    seen, copied = set[int](), set[int]()
    passages = _iterate_rows(old, "passages", "passage", "document, ordinal, start, spans, layout")
    for document, rows in groupby(passages, key=lambda row: row[1]):
        seen.add(document)
        if document not in copied and copier.copy(document, list(rows)):
            copied.add(document)
    head.write_fields(new, copier.fields)
    ids: dict[int, object] = dict(_iterate_ids(old))
    lost = [ids.get(document) for document in (seen | ids.keys()) - copied]
    lost_ids = sorted({name for name in lost if type(name) is str} - copier.ids)
    return Salvage(len(copied), lost_ids, sum(type(name) is not str for name in lost))


def _iterate_ids(connection: sqlite3.Connection) -> Iterator[Row]:
    """Yield number and id of each document, as the index on the ids has them and as its row has."""
    with suppress(sqlite3.DatabaseError):
        yield from connection.execute("SELECT document, id FROM documents ORDER BY id")
    yield from _iterate_rows(connection, "documents", "document", "id")


def _iterate_rows(
    connection: sqlite3.Connection, table: str, key: str, columns: str
) -> Iterator[Row]:
    """Yield the rows of a table that can be read, in the order of their whole numbers `key`."""
    query = f"SELECT {key}, {columns} FROM {table} NOT INDEXED WHERE {key} >= ? ORDER BY {key}"
    after, gap = 0, 0
    while gap < MAX_GAP:
        try:
            for row in connection.execute(query, (after,)):
                if row[0] >= after:
                    yield row
                    after, gap = row[0] + 1, 0
        except sqlite3.DatabaseError:
            after, gap = after + 1, gap + 1
        else:
            return


class _Copier:
    """Copies one document at a time, whole or not at all."""

    def __init__(self, old: sqlite3.Connection, new: sqlite3.Connection) -> None:
        self._old, self._new = old, new
        self.fields: dict[str, str] = {}
        self.ids: set[str] = set()

    def copy(self, document: int, passages: Sequence[Row]) -> bool:
        """Copy a document, and return whether it could be read whole."""
        self._new.execute(f"SAVEPOINT {SAVEPOINT}")
        try:
            document_id = self._copy(document, passages)
        except (sqlite3.DatabaseError, ValueError, TypeError, AttributeError, RecursionError):
            self._new.execute(f"ROLLBACK TO {SAVEPOINT}")
            return False
        finally:
            self._new.execute(f"RELEASE {SAVEPOINT}")
        self.ids.add(document_id)
        return True

    def _copy(self, document: int, passages: Sequence[Row]) -> str:
        row = _read_row(
            self._old, "id, source_hash, passages, metadata", "documents", "document", document
        )
        document_id, _, count, metadata = row
        _check_types(row, (str, str, int, str))
        if sorted(passage[2] for passage in passages) != list(range(count)):
            raise ValueError("a passage is missing")
        inserted = self._new.execute(
            "INSERT INTO documents (id, source_hash, passages, metadata) VALUES (?, ?, ?, ?)", row
        )
        number = int(inserted.lastrowid or 0)
        self._copy_metadata(number, json.loads(metadata))
        for passage, _, *values in passages:
            self._copy_passage(number, passage, values)
        return str(document_id)

    def _copy_metadata(self, document: int, metadata: dict[str, Any]) -> None:
        value_sums.insert_metadata(self._new, document, metadata)
        with suppress(InputError):  # a changed byte gave a field another type
            self.fields |= new_fields(self.fields, metadata)

    def _copy_passage(self, document: int, passage: int, values: Sequence[Any]) -> None:
        _check_types(values, (int, int, int, str))
        inserted = self._new.execute(
            "INSERT INTO passages (document, ordinal, start, spans, layout) VALUES (?, ?, ?, ?, ?)",
            (document, *values),
        )
        number = inserted.lastrowid
        texts = _read_row(self._old, "c0, c1", "texts_content", "id", passage)
        _check_types(texts, (str, str))
        self._new.execute(
            "INSERT INTO texts (rowid, terms, text) VALUES (?, ?, ?)", (number, *texts)
        )
        (data,) = _read_row(self._old, "data", "tokens", "passage", passage)
        self._new.execute("INSERT INTO tokens VALUES (?, ?)", (number, data))
        checksums = _read_row(self._old, "content, codes", "checksums", "passage", passage)
        self._new.execute("INSERT INTO checksums VALUES (?, ?, ?)", (number, *checksums))


def _read_row(
    connection: sqlite3.Connection, columns: str, table: str, key: str, number: int
) -> Row:
    """Return a row; raise ValueError if there is none, and SQLite's error if it is unreadable."""
    query = f"SELECT {columns} FROM {table} NOT INDEXED WHERE {key} = ?"
    row: Row | None = connection.execute(query, (number,)).fetchone()
    if row is None:
        raise ValueError(f"{table} has no row {number}")
    return row


def _check_types(values: Sequence[object], types: Sequence[type]) -> None:
    if not all(map(isinstance, values, types)):
        raise TypeError("a value is neither a number nor a text")
