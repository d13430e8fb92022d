"""The SQL of an index: documents and passages are inserted, deleted, filtered and read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hybrid_search.backends.embedded import checksums, head, term_sums, value_sums
from hybrid_search.backends.embedded.checksums import compute_content_checksum, insert_checksums
from hybrid_search.backends.embedded.schema import index_name
from hybrid_search.backends.turn_layout import build_layout
from hybrid_search.backends.types import (
    FACETS,
    DamagedRowError,
    IndexInfo,
    IndexSpec,
    Key,
    PassageContent,
    StoredPassage,
)
from hybrid_search.text import word_codes
from hybrid_search.text.filters import Scalar
from hybrid_search.text.terms import join_terms
from hybrid_search.text.types import Entry, WordCodes

MAX_STATEMENT_VALUES = 500
"""Values in one SQL statement; every supported version of SQLite allows more."""

DOCUMENT_PASSAGES = "SELECT passage FROM passages WHERE document = ?"

NAMED_PASSAGES = "passages JOIN documents USING (document)"

CONTENT = """
documents.id, documents.metadata, ordinal, start, layout, c0, c1,
checksums.content, data, checksums.codes"""

CONTENT_TABLES = f"""
{NAMED_PASSAGES} JOIN texts_content ON texts_content.id = passage
LEFT JOIN tokens USING (passage) LEFT JOIN checksums USING (passage)"""


def describe_index(connection: sqlite3.Connection, spec: IndexSpec) -> IndexInfo:
    """Return the spec and fields of the index, and count what it contains."""
    documents = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    passages, spans = connection.execute(
        "SELECT count(*), coalesce(sum(spans), 0) FROM passages"
    ).fetchone()
    return IndexInfo(spec, head.read_fields(connection), documents, passages, spans)


def has_documents(connection: sqlite3.Connection) -> bool:
    """Return whether the index has a document, or is too damaged to tell."""
    try:
        return connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True


def list_passages(connection: sqlite3.Connection, document_id: str) -> list[Key]:
    """Return the passages of a document in their order."""
    query = (
        "SELECT passage FROM passages JOIN documents USING (document) WHERE id = ? ORDER BY ordinal"
    )
    return [passage for (passage,) in connection.execute(query, (document_id,))]


def read_source_hashes(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the source hashes of those documents of `ids` that exist."""
    return dict(_select_in(connection, "SELECT id, source_hash FROM documents WHERE id IN", ids))


def delete_documents(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Remove documents with everything of them, and return how many of `ids` existed."""
    query = "SELECT document FROM documents WHERE id = ?"
    rows = [row for document_id in ids for row in connection.execute(query, (document_id,))]
    is_damaged = [_delete_document(connection, document) for (document,) in rows]
    if any(is_damaged):  # FTS5 read in its first column which words to remove
        connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
        term_sums.discard(connection)
        value_sums.make(connection)
    return len(rows)


def _delete_document(connection: sqlite3.Connection, document: int) -> bool:
    """Remove a document, and return whether words of it may be left behind."""
    passages = connection.execute(DOCUMENT_PASSAGES, (document,)).fetchall()
    # the first column is the one whose words are found
    texts = f"SELECT 1 FROM texts_content WHERE id IN ({DOCUMENT_PASSAGES})"
    has_no_text = connection.execute(f"{texts} AND typeof(c0) != 'text'", (document,)).fetchone()
    contents = read_contents(connection, [passage for (passage,) in passages])
    is_damaged = (
        bool(has_no_text)
        or len(contents) < len(passages)
        or any(content.fault for content in contents.values())
    )
    term_sums.subtract(connection, [passage for (passage,) in passages])
    connection.executemany("DELETE FROM texts WHERE rowid = ?", passages)
    connection.executemany("DELETE FROM tokens WHERE passage = ?", passages)
    connection.executemany("DELETE FROM checksums WHERE passage = ?", passages)
    connection.executemany("DELETE FROM left_out WHERE passage = ?", passages)
    value_sums.subtract(connection, document)
    for table in ("passages", "metadata", "documents"):
        connection.execute(f"DELETE FROM {table} WHERE document = ?", (document,))
    return is_damaged


def insert_document(connection: sqlite3.Connection, entry: Entry) -> int:
    """Insert a document in place of an earlier one with its id, and return its number."""
    document = entry.document
    delete_documents(connection, [document.id])
    metadata = json.dumps(document.metadata, ensure_ascii=False)
    row = connection.execute(
        "INSERT INTO documents (id, source_hash, passages, metadata) VALUES (?, ?, ?, ?)",
        (document.id, entry.source_hash, entry.passages, metadata),
    )
    number = int(row.lastrowid or 0)
    value_sums.insert_metadata(connection, number, document.metadata)
    return number


def insert_passage(connection: sqlite3.Connection, document: int, entry: Entry) -> int:
    """Insert a passage, and return its number, which is higher than all before it."""
    passage, layout, data = entry.passage, build_layout(entry), word_codes.to_bytes(entry.tokens)
    row = connection.execute(
        "INSERT INTO passages (document, ordinal, start, spans, layout) VALUES (?, ?, ?, ?, ?)",
        (document, passage.ordinal, passage.start, entry.spans, layout),
    )
    number = int(row.lastrowid or 0)
    terms = _insert_text(connection, number, entry)
    connection.execute("INSERT INTO tokens VALUES (?, ?)", (number, data))
    metadata = json.dumps(entry.document.metadata, ensure_ascii=False)
    place = (passage.ordinal, passage.start, layout)
    content = compute_content_checksum((entry.document.id, metadata, *place, terms, entry.text))
    insert_checksums(connection, number, content, data)
    return number


def _insert_text(connection: sqlite3.Connection, passage: int, entry: Entry) -> str:
    """Insert the text of a passage, and return its terms."""
    text = entry.text
    terms = join_terms(text, entry.tokens.words)
    row = (passage, terms, text)
    connection.execute("INSERT INTO texts (rowid, terms, text) VALUES (?, ?, ?)", row)
    return terms


def read_document_id(connection: sqlite3.Connection, passage: Key) -> object:
    """Return the id of the document of a passage, None if there is none."""
    query = "SELECT id FROM documents JOIN passages USING (document) WHERE passage = ?"
    row = connection.execute(query, (passage,)).fetchone()
    return row[0] if row else None


def read_passages(
    connection: sqlite3.Connection,
    passages: Sequence[Key],
    scores: Mapping[Key, float],
    codes: Mapping[Key, WordCodes],
) -> list[StoredPassage]:
    """Return those of `passages` that still exist, in order, with their scores and codes.

    Those of which only some rows can be read come last, without a name and with unreadable codes.

    Args:
        connection: Of the index.
        passages: The numbers of passages.
        scores: The BM25 score of each.
        codes: The word codes of each that has any.

    Raises:
        DamagedRowError: If an id or the number of a passage is damaged.
    """
    columns, in_order = "documents.id, ordinal", sorted(passages)  # side by side in the file
    rows = _select_passages(connection, columns, NAMED_PASSAGES, in_order)
    names = {passage: (document_id, ordinal) for passage, document_id, ordinal in rows}
    for document_id, ordinal in names.values():
        if type(document_id) is not str or type(ordinal) is not int:
            raise DamagedRowError(index_name(connection), document_id)
    present = [passage for passage in passages if passage in names and passage in codes]
    stored = [
        StoredPassage(passage, *names[passage], scores[passage], codes[passage])
        for passage in present
    ]
    missing = [passage for passage in passages if passage not in names or passage not in codes]
    remains = _find_remains(connection, missing)
    nameless = [StoredPassage(key, "", -1, 0.0, word_codes.UNREADABLE) for key in remains]
    return [*stored, *nameless]


REMAINS = {"passages": "passage", "tokens": "passage", "texts_docsize": "id"}
"""The tables that have a row for each passage, and the name of its number there."""


def _find_remains(connection: sqlite3.Connection, passages: Sequence[Key]) -> list[Key]:
    """Return those of `passages` of which some rows are there; a deleted one has none.

    The index is damaged if there are any. They are no passage's of a document that has a name.
    """
    selects = [f"SELECT {key} AS passage FROM {table}" for table, key in REMAINS.items()]
    query = f"SELECT DISTINCT passage FROM ({' UNION ALL '.join(selects)}) WHERE passage IN"
    return [passage for (passage,) in _select_in(connection, query, passages)]


def read_contents(
    connection: sqlite3.Connection, passages: Sequence[Key]
) -> dict[Key, PassageContent]:
    """Return what a hit shows of each of `passages` that still exists, checked by its checksums.

    Those of which only some rows can be read have a fault.
    """
    contents: dict[Key, PassageContent] = {}
    rows = _select_passages(connection, CONTENT, CONTENT_TABLES, sorted(passages))
    for passage, *values, data, codes in rows:
        fault = checksums.find_content_fault(*values)
        if fault is None and checksums.is_changed(data, codes):
            fault = checksums.CHANGED_CODES
        _, metadata, _, start, layout, _, text, _ = values
        contents[passage] = (
            PassageContent(0, "", "[]", "{}", fault)
            if fault and fault.kind == "text"
            else PassageContent(start, text, layout, metadata, fault)
        )
    missing = [passage for passage in passages if passage not in contents]
    for passage in _find_remains(connection, missing):
        contents[passage] = PassageContent(0, "", "[]", "{}", checksums.CHANGED_CONTENT)
    return contents


def count_facet(
    connection: sqlite3.Connection, name: str, matching: str, values: Sequence[object]
) -> dict[Scalar, int]:
    """Return how many documents have each value of a field, the most frequent values first.

    Only documents are counted whose number the SQL `matching` selects. Values that are not those
    that were written are a DamagedIndexError.

    Raises:
        DamagedRowError: If one of the values cannot be read.
    """
    query = (
        "SELECT value, count(DISTINCT document) AS documents FROM metadata "
        f"WHERE name = ? AND document IN ({matching}) "
        "GROUP BY value ORDER BY documents DESC, value LIMIT ?"
    )
    counts = connection.execute(query, (name, *values, FACETS)).fetchall()
    if any(type(value) is bytes for value, _ in counts):
        raise DamagedRowError(
            index_name(connection), _find_damaged_value(connection, name), "the metadata"
        )
    value_sums.check_values(connection, "name = ?", (name,))
    boolean = head.read_fields(connection).get(name) == "boolean"  # SQLite stores these as numbers
    return {bool(value) if boolean else value: count for value, count in counts}


def _find_damaged_value(connection: sqlite3.Connection, name: str) -> object:
    """Return the id of a document whose value of a metadata field cannot be read."""
    query = "SELECT id, value FROM metadata JOIN documents USING (document) WHERE name = ?"
    rows = connection.execute(query, (name,))
    return next((document_id for document_id, value in rows if type(value) is bytes), None)


def read_left_out(connection: sqlite3.Connection) -> list[Key]:
    """Return the passages that no segment has, because their codes are damaged."""
    return [passage for (passage,) in connection.execute("SELECT passage FROM left_out")]


def read_codes(
    connection: sqlite3.Connection, passages: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """Return passage and word codes of each of `passages` that still exists."""
    return _select_passages(connection, "data", "tokens", passages)


def read_layouts(
    connection: sqlite3.Connection, passages: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Return each of `passages` that still exists, with where it begins and its layout."""
    return _select_passages(connection, "json_array(start, layout)", "passages", passages)


def read_codes_checksums(
    connection: sqlite3.Connection, passages: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Return each of `passages` that still exists, with the checksum of its word codes."""
    return _select_passages(connection, "codes", "checksums", passages)


def _select_passages(
    connection: sqlite3.Connection, columns: str, tables: str, passages: Sequence[int]
) -> Iterator[tuple[Any, ...]]:
    """Return passage and columns of each of `passages` that the tables have.

    The statement is the same for any number of passages, so that SQLite prepares it once.
    """
    query = f"SELECT passage, {columns} FROM json_each(?) CROSS JOIN {tables} WHERE passage = value"
    return connection.execute(query, (json.dumps(passages),))


def _select_in(
    connection: sqlite3.Connection, query: str, values: Sequence[object]
) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), MAX_STATEMENT_VALUES):
        batch = values[start : start + MAX_STATEMENT_VALUES]
        yield from connection.execute(f"{query} ({_placeholders(batch)})", batch)


def _placeholders(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
