"""Reads what can be read of damaged records: each of tantivy's segments alone, record by record.

A record has a checksum of its own, so what is read is what was written. The files of codes have the
ids of all documents: they name those that are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from hybrid_search.backends.embedded import record
from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.record import Record
from hybrid_search.backends.embedded.record_reader import (
    DamagedRecordsError,
    open_view,
    read_meta,
)
from hybrid_search.backends.embedded.versions import META_COPY, RECORDS, read_note


@dataclass(frozen=True, slots=True, eq=False)
class FoundDocuments:
    """The records of all documents that are whole, and which others there were.

    `lost_ids` are those of documents that could not be read, `unnamed` counts those whose id could
    not be read either.
    """

    records: Sequence[Record]
    documents: int
    lost_ids: Sequence[str]
    unnamed: int


def read_documents(version: Path, files: Sequence[CodesFile]) -> FoundDocuments:
    """Return what can be read of the records of a version of an index.

    Args:
        version: Its folder.
        files: Its files of codes, as far as they can be read.
    """
    records, deleted = _read_all(version)
    by_document: dict[int, dict[int, Record]] = {}
    for found in records:
        by_document.setdefault(found.document, {})[found.ordinal] = found
    whole: dict[str, dict[int, Record]] = {}
    for _, parts in sorted(by_document.items()):  # a later version of a document comes later
        first = next(iter(parts.values()))
        if len(parts) == first.passages:
            whole[first.id] = parts
    gone = {found.document for found in deleted} | by_document.keys()
    named = {document: name for file in files for document, name in file.ids.items()}
    known_ids = {found.id for found in records} | {
        name for document, name in named.items() if document not in gone and name
    }
    unnamed = sum(not name for document, name in named.items() if document not in gone)
    kept = sorted((item for parts in whole.values() for item in parts.values()), key=_number)
    return FoundDocuments(kept, len(whole), sorted(known_ids - whole.keys()), unnamed)


def _number(found: Record) -> int:
    return found.passage


def _read_all(version: Path) -> tuple[list[Record], list[Record]]:
    """Return the records that are sound, and those of them that are deleted."""
    try:
        meta = read_meta(version / RECORDS)
    except DamagedRecordsError:
        meta = read_note(version, META_COPY)
        if meta is None:
            raise
    kept: list[Record] = []
    deleted: list[Record] = []
    for segment in meta["segments"]:
        for found, is_deleted in _read_segment(version / RECORDS, meta, segment):
            (deleted if is_deleted else kept).append(found)
    return kept, deleted


def _read_segment(
    folder: Path, meta: Mapping[str, Any], segment: Mapping[str, Any]
) -> Iterator[tuple[Record, bool]]:
    """Yield the sound records of a segment, and whether they are deleted."""
    try:
        _, searcher = open_view(folder, {**meta, "segments": [segment]})
        hits = searcher.search(tantivy.Query.all_query(), limit=segment["max_doc"] + 1).hits
        alive = {address.doc for _, address in hits}
    except BaseException as error:
        if not _is_damage(error):
            raise
        return
    for number in range(segment["max_doc"]):
        try:
            found = record.read(searcher.doc(tantivy.DocAddress(0, number)))
        except BaseException as error:
            if not _is_damage(error):
                raise
            continue
        yield found, number not in alive


def _is_damage(error: BaseException) -> bool:
    """Return whether an error is what tantivy and we make of bytes that changed."""
    is_ours = isinstance(error, (ValueError, TypeError, LookupError, OSError))
    return is_ours or type(error).__name__ in ("PanicException", "error")
