"""A small embedded index, and changes to one behind its back: by a disk, or by a wrong writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hybrid_search.backends.embedded import codes_folder, record
from hybrid_search.backends.embedded.codes_file import UNFINISHED, CodesBuilder, CodesFile
from hybrid_search.backends.embedded.head import Head, read_head
from hybrid_search.backends.embedded.record import Record
from hybrid_search.backends.embedded.record_reader import META, RecordReader
from hybrid_search.backends.embedded.versions import CODES, RECORDS
from hybrid_search.backends.embedded.writer import HEAP_BYTES
from hybrid_search.client import Client
from hybrid_search.text.stems import stem_text

DOCUMENTS: list[dict[str, Any]] = [
    {"id": f"call-{number:03}", "text": f"refund word{number} please", "number": number}
    for number in range(40)
]
STORE = Path("store")
URL = f"embedded:{STORE}"
INDEX = STORE / "calls.index"


def ask(client: Client) -> dict[str, float]:
    """Return the score of each document that a phrase of all of them finds."""
    return {hit.id: hit.score for hit in client.query("refund word7", size=50).hits}


def open_head(index: Path = INDEX) -> Head:
    head = read_head(index)
    assert head is not None
    return head


def list_records(index: Path = INDEX) -> list[Record]:
    """Return all records, in the order of passages."""
    reader = RecordReader(open_head(index).version_folder(index) / RECORDS)
    found = reader.read_records(reader.list_passages()[0].tolist())
    return [item for item in found.values() if item is not None]


def find_passage(document_id: str, ordinal: int = 0, index: Path = INDEX) -> int:
    """Return the number of a passage."""
    (passage,) = (
        item.passage
        for item in list_records(index)
        if (item.id, item.ordinal) == (document_id, ordinal)
    )
    return passage


def change_records(edit: Callable[[Record], Record | None], index: Path = INDEX) -> None:
    """Write other records, with their checksums, in place of those that `edit` returns changed.

    It returns None for a passage that is to be gone.
    """
    version = open_head(index).version_folder(index)
    reader = RecordReader(version / RECORDS)
    writer = reader.index.writer(HEAP_BYTES, 1)
    changes = 0
    for before in list_records(index):
        after = edit(before)
        if after != before:
            changes += 1
            writer.delete_documents_by_query(reader.match_any(record.PASSAGE, [before.passage]))
        if after is not None and after != before:
            writer.add_document(record.to_document(after, stem_text(after.text)))
    assert changes
    writer.commit()
    writer.wait_merging_threads()


def list_codes_files(index: Path = INDEX) -> list[CodesFile]:
    head = open_head(index)
    paths = codes_folder.list_files(head.version_folder(index) / CODES)
    return [CodesFile(path, head.identity) for path in paths]


def read_codes(passage: int, index: Path = INDEX) -> bytes:
    """Return the word codes of a passage."""
    (data,) = (found for file in list_codes_files(index) if (found := file.read(passage)))
    return data


def change_codes(passage: int, data: bytes, index: Path = INDEX) -> None:
    """Write other word codes of a passage, with checksum and lists, as a wrong writer would."""
    head = open_head(index)
    for file in list_codes_files(index):
        if file.first <= passage <= file.last:
            folder = file.path.parent
            builder = CodesBuilder(folder / UNFINISHED, head.identity)
            for number, document in zip(
                file.passages.tolist(), file.documents.tolist(), strict=True
            ):
                kept = data if number == passage else file.read(number) or b""
                builder.add(number, document, file.ids[document], kept)
            builder.seal(folder, file.first, file.last)
    os.utime(head.version_folder(index) / RECORDS / META)  # readers open the files again


def damage_codes(passage: int, index: Path = INDEX) -> None:
    """Change one byte of the word codes of a passage, as a failing disk does."""
    (file,) = (file for file in list_codes_files(index) if file.read(passage))
    content = bytearray(file.path.read_bytes())
    content[content.index(read_codes(passage, index)) + 40] ^= 8
    file.path.write_bytes(content)
