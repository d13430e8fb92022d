"""Documents from table rows: columns as keys, repeated ids, and calls of turns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from hybrid_search.errors import InputError, show_value
from hybrid_search.ingest.column_names import EXAMPLE, propose_for_header
from hybrid_search.ingest.document_parser import stringify_number
from hybrid_search.ingest.seen_ids import SeenIds
from hybrid_search.ingest.sources.read_options import Columns, ReadOptions
from hybrid_search.ingest.sources.records import (
    CONTENT,
    RESERVED,
    TURN_KEYS,
    Record,
    build_record,
    dump,
    find,
)
from hybrid_search.ingest.sources.turn_rows import group_calls


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with named columns."""

    header: Sequence[str]
    """The names of the columns, which are unique."""
    read: Callable[[], Iterator[Record]]
    """Returns the rows in order, without missing values; it can be called again."""


def read_table(table: Table, options: ReadOptions) -> Iterator[Record]:
    """Return the documents of a table's rows, after checking the whole table.

    Raises InputError if no columns give id and text, or if different rows have the same id, as all
    but the last would be lost.
    """
    columns = complete_columns(options.columns, table.header, options.rows)
    options = replace(options, columns=columns)
    if options.rows == "turn":
        return group_calls(table.read(), options)
    _check_ids(table, columns.get("id", "id"))
    return (build_record(record, options) for record in table.read())


def complete_columns(columns: Columns, header: Sequence[str], rows: str = "document") -> Columns:
    """Return `columns` extended by columns named like a key in different case.

    Raises:
        InputError: If a column is missing, or none gives the id or the text.
    """
    of = {key: name if name in header else name.strip() for key, name in columns.items()}
    below_turns = {"text", *TURN_KEYS} if "turns" in {*of, *header} else set()
    listed = f"the columns are {', '.join(header)}"[:1000]
    for key, name in of.items():
        if key not in below_turns and not {name, name.partition(".")[0]} & {*header}:
            raise InputError(
                f"no column {show_value(name)}, which --columns names, is among the {len(header)} "
                "of the table: name one that is",
                listed,
            )
    for key in (*RESERVED, *TURN_KEYS) if rows == "turn" else RESERVED:
        named_so = [name for name in header if name.strip().casefold() == key]
        if key not in {*of, *header} and named_so and named_so[0] not in of.values():
            of[key] = named_so[0]
    known = {*of, *header}
    if "id" not in known or known.isdisjoint(CONTENT):
        proposed = propose_for_header(header)
        remedy = f"{'say which they are, as in' if proposed == EXAMPLE else 'give'} {proposed}"
        raise InputError(
            f"no columns id and text are among the {len(header)} of the table: {remedy}", listed
        )
    return of


def _check_ids(table: Table, column: str) -> None:
    """Raise InputError if two different rows have the same id."""
    with closing(SeenIds()) as seen_ids:
        for record in table.read():
            fields = record.fields or {}
            document_id = stringify_number(find(fields, column))
            if not isinstance(document_id, str):
                continue
            digest = hashlib.blake2b(dump(fields), digest_size=16).hexdigest()
            earlier = seen_ids.add(document_id, str(record.number), digest)
            if earlier and earlier[1] != digest:
                raise InputError(
                    f"rows {earlier[0]} and {record.number} of the table have the same id, and "
                    "nothing of it was taken: give --rows turn if each row is a turn of the call "
                    "that its id names, or name another column, as in --columns id=COLUMN"
                )
