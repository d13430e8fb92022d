"""What tantivy keeps of a passage: its fields, and all that a hit shows, with a checksum."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

import tantivy

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded.facts import FIELD as FACTS
from hybrid_search.backends.embedded.facts import list_facts
from hybrid_search.backends.turn_layout import build_layout, read_speakers
from hybrid_search.backends.types import Fault, PassageContent
from hybrid_search.text.filters import leaves
from hybrid_search.text.types import Entry

PASSAGE, DOCUMENT, ORDINAL, SPANS = "passage", "document", "ordinal", "spans"
ID, TERMS, FIELDS, SPEAKERS, RECORD = "id", "terms", "fields", "speakers", "record"

CHANGED_CONTENT = Fault(
    "text", "its text, its place, its turns or its metadata are not those that were written"
)

_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Record:
    """Everything of a passage but its codes, as in its `Entry`; layout and metadata are JSON.

    Its number, `passage`, is never given to another, and `document` is that of the first passage of
    its document.
    """

    passage: int
    document: int
    ordinal: int
    id: str
    source_hash: str
    passages: int
    start: int
    spans: int
    text: str
    layout: str
    metadata: str

    @property
    def content(self) -> PassageContent:
        """What a hit shows of it."""
        return PassageContent(self.start, self.text, self.layout, self.metadata)


def build_schema() -> tantivy.Schema:
    """Return the schema of the index of a store."""
    builder = tantivy.SchemaBuilder()
    for name in (PASSAGE, DOCUMENT, ORDINAL):
        builder.add_unsigned_field(name, indexed=True, fast=True)
    builder.add_unsigned_field(SPANS, fast=True)
    for name in (ID, FACTS, FIELDS, SPEAKERS):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(TERMS, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field(RECORD, stored=True)
    return builder.build()


def make_record(entry: Entry, passage: int, document: int) -> Record:
    """Return the record of an entry under its numbers."""
    return Record(
        passage,
        document,
        entry.passage.ordinal,
        entry.document.id,
        entry.source_hash,
        entry.passages,
        entry.passage.start,
        entry.spans,
        entry.text,
        build_layout(entry),
        json.dumps(entry.document.metadata, ensure_ascii=False),
    )


def to_document(record: Record, terms: str) -> tantivy.Document:
    """Return a record as tantivy takes it; `terms` are those of its text, joined by blanks."""
    document = tantivy.Document()
    document.add_unsigned(PASSAGE, record.passage)
    document.add_unsigned(DOCUMENT, record.document)
    document.add_unsigned(ORDINAL, record.ordinal)
    document.add_unsigned(SPANS, record.spans)
    document.add_text(ID, record.id)
    metadata = json.loads(record.metadata)
    _add_texts(document, FACTS, list_facts(record.id, metadata))
    _add_texts(document, FIELDS, (f"{kind}:{name}" for name, kind, _ in leaves(metadata)))
    _add_texts(document, SPEAKERS, read_speakers(record.layout))
    document.add_text(TERMS, terms)
    data = json.dumps(astuple(record), ensure_ascii=False).encode()
    document.add_bytes(RECORD, _CHECKSUM.pack(crc32(data)) + data)
    return document


def _add_texts(document: tantivy.Document, field: str, texts: Iterable[str]) -> None:
    for text in dict.fromkeys(texts):
        document.add_text(field, text)


def read(document: tantivy.Document) -> Record:
    """Return the record that `to_document` put into a document; raise ValueError if it changed."""
    stored: Any = document.get_first(RECORD)
    data = bytes(stored)
    if _CHECKSUM.unpack_from(data)[0] != crc32(data[_CHECKSUM.size :]):
        raise ValueError("a record is not the one that was written")
    return Record(*json.loads(data[_CHECKSUM.size :]))
