"""What is left of deleted and replaced documents in the files of an index, and the files as such.

tantivy marks a deleted document and keeps its bytes until the segment is written again, and a file
of codes keeps those of a passage until it is compacted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tantivy

from hybrid_search.backends.embedded import codes_folder, record
from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.codes_folder import list_folder
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.embedded.record_reader import (
    META,
    RecordReader,
    list_files,
    open_view,
    read_meta,
)
from hybrid_search.backends.embedded.versions import CODES, RECORDS, list_versions

CHUNK = 1 << 24
"""Bytes of a file that are read at once."""

OVERLAP = 1 << 13
"""Bytes that the end of one chunk and the start of the next have in common."""


def list_beside_deleted(records: Path) -> Numbers:
    """Return the passages in those segments of a folder of records that hold deleted ones too."""
    meta = read_meta(records)
    segments = [segment for segment in meta["segments"] if segment["deletes"]]
    if not segments:
        return np.zeros(0, np.int64)
    _, searcher = open_view(records, {**meta, "segments": segments})
    hits = searcher.search(
        tantivy.Query.all_query(),
        limit=max(1, searcher.num_docs),
        count=False,
        order_by_field=record.PASSAGE,
        order=tantivy.Order.Asc,
    ).hits
    return np.fromiter((value for value, _ in hits), np.int64, len(hits))


def list_remains(folder: Path, current: Head) -> list[str]:
    """Return in words what the index in `folder` still has of what it no longer shows."""
    version = current.version_folder(folder)
    records, codes = version / RECORDS, version / CODES
    meta = read_meta(records)
    deleted = sum(
        segment["deletes"]["num_deleted_docs"] for segment in meta["segments"] if segment["deletes"]
    )
    used = {*list_files(meta), META, ".managed.json"}
    files = codes_folder.list_files(codes)
    stale = [path for path in list_versions(folder) if path != version]
    stale += [path for path in list_folder(records) if path.name not in used | _locks(records)]
    stale += [path for path in codes_folder.list_own(codes) if path not in files]
    alive = RecordReader(records).list_numbers(record.PASSAGE)
    opened = (CodesFile.open_or_none(path, current.identity) for path in files)
    coded = [file.passages[~np.isin(file.passages, alive)] for file in opened if file]
    passages = sum(map(len, coded))
    found = [f"{deleted:,} deleted passages are in segments of {records}"] if deleted else []
    found += [f"codes of {passages:,} deleted passages are in {codes}"] if passages else []
    return found + [f"{path} is of an earlier state" for path in stale]


def _locks(records: Path) -> set[str]:
    return {path.name for path in records.glob(".tantivy-*.lock")}


def iterate_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each file in `folder` by its name, in chunks that overlap by `OVERLAP` bytes."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        with path.open("rb") as file:
            end = b""
            while data := file.read(CHUNK):
                yield str(path.relative_to(folder)), end + data
                end = data[-OVERLAP:]
