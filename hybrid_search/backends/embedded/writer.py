"""The writer of an index: first the file of codes, then tantivy's commit that names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import tantivy

from hybrid_search.backends.base import Writer, find_field_user
from hybrid_search.backends.embedded import codes_folder, facts, record
from hybrid_search.backends.embedded.codes_file import UNFINISHED, CodesBuilder
from hybrid_search.backends.embedded.failures import translate_errors
from hybrid_search.backends.embedded.head import Head, write_checked
from hybrid_search.backends.embedded.record_reader import RecordReader
from hybrid_search.backends.embedded.remains import list_beside_deleted
from hybrid_search.backends.embedded.versions import (
    CODES,
    FIELDS,
    RECORDS,
    read_noted_fields,
    remove_index,
    sweep_versions,
)
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.types import DamagedRowError, Refusal
from hybrid_search.errors import InputError
from hybrid_search.text import word_codes
from hybrid_search.text.filters import new_fields
from hybrid_search.text.languages import find_language
from hybrid_search.text.stems import stem_text
from hybrid_search.text.types import Document, Entry

HEAP_BYTES = 50_000_000
"""What tantivy may gather before it writes a segment; it takes no less than 15 MB."""


PAGE = 256
"""Passages that are written again at once."""


@dataclass(slots=True, eq=False)
class OpenDocument:
    """A document whose last passage has not been written yet; `first` is the number of its first.

    Before it, `codes_before` passages have codes, and the index has the fields `fields_before`.
    """

    first: int
    codes_before: int
    fields_before: dict[str, str]
    records: list[tantivy.Document] = field(default_factory=list)


class EmbeddedWriter(Writer):
    """Writes a version of the index in `folder`; closing it releases `lock`, if there is one.

    `read_source_hashes` may be called from another thread than the other methods: it reads what was
    committed. Unless it `keeps_empty`, an index that has no document at the end is removed.
    """

    def __init__(
        self, folder: Path, current: Head, lock: WriterLock | None, *, keeps_empty: bool
    ) -> None:
        self._index_folder, self._head, self._lock = folder, current, lock
        self._keeps_empty = keeps_empty
        self._version = current.version_folder(folder)
        self._records_folder = self._version / RECORDS
        self._codes_folder = self._version / CODES
        with translate_errors(folder):
            if lock is not None:
                sweep_versions(folder, current)
            self._reader = RecordReader(self._records_folder)
            self._writer = tantivy.Index.open(str(self._records_folder)).writer(HEAP_BYTES, 1)
            alive = self._reader.list_numbers(record.PASSAGE)
            last = max(int(alive.max(initial=0)), codes_folder.find_last(self._codes_folder))
            codes_folder.sweep(self._codes_folder, alive)
            self._noted_fields = read_noted_fields(self._version)
        self._next = last + 1
        self._fields = self._noted_fields | self._reader.list_fields()
        self._builder = self._new_builder()
        self._open: OpenDocument | None = None
        self._commits = 0
        self._written: dict[str, Document] = {}
        """The documents that the next commit makes visible, by their ids."""

    def _new_builder(self) -> CodesBuilder:
        return CodesBuilder(self._codes_folder / UNFINISHED, self._head.identity)

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed."""
        reader = self._reader
        hashes: dict[str, str] = {}
        with translate_errors(self._index_folder):
            for start in range(0, len(ids), 500):
                documents = reader.match_any(record.ID, ids[start : start + 500])
                found = reader.find_records(facts.all_of(reader.match_firsts(), documents))
                hashes |= {item.id: item.source_hash for item in found}
        return hashes

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Return the documents whose metadata does not fit the index's fields; write all others.

        A commit comes only between documents, so nobody sees half of one.
        """
        with translate_errors(self._index_folder):
            refusals = [refusal for entry in entries if (refusal := self._add(entry))]
            if entries and entries[-1].is_last:
                self._commit()
        return refusals

    def _add(self, entry: Entry) -> Refusal | None:
        if entry.passage.ordinal == 0:
            try:
                self._begin(entry.document)
            except InputError as error:
                self._open = None
                return Refusal(entry.document, str(error), error.detail)
        if self._open is not None:
            self._add_passage(self._open, entry)
            if entry.is_last:
                self._end(self._open, entry.document)
        return None

    def _begin(self, document: Document) -> None:
        before = dict(self._fields)
        find_user = partial(self._find_field_user, document.id)
        self._fields |= new_fields(before, document.metadata, find_user, can_free=True)
        self._open = OpenDocument(self._next, len(self._builder), before)

    def _add_passage(self, opened: OpenDocument, entry: Entry) -> None:
        number, self._next = self._next, self._next + 1
        data = word_codes.to_bytes(entry.tokens)
        self._builder.add(number, opened.first, entry.document.id, data)
        language = find_language(entry.document.metadata, entry.text)
        terms = stem_text(entry.text, language)
        made = record.make_record(entry, number, opened.first)
        opened.records.append(record.to_document(made, terms))

    def _end(self, opened: OpenDocument, document: Document) -> None:
        self._writer.delete_documents_by_term(record.ID, document.id)
        for made in opened.records:
            self._writer.add_document(made)
        self._written[document.id] = document
        self._open = None

    def _commit(self) -> None:
        """Make durable what was written: the codes first, since a commit names their passages."""
        if len(self._builder):
            first, last = self._builder.passages[0], self._builder.passages[-1]
            self._builder.seal(self._codes_folder, first, last)
            self._builder = self._new_builder()
        self._writer.commit()
        if self._fields != self._noted_fields:
            write_checked(self._version / FIELDS, self._fields)
            self._noted_fields = dict(self._fields)
        self._written.clear()
        self._reader = RecordReader(self._records_folder)
        self._commits += 1
        if self._commits % codes_folder.FEW_FILES == 0:
            self._compact()

    def _compact(self) -> None:
        alive = self._reader.list_numbers(record.PASSAGE)
        codes_folder.compact(self._codes_folder, alive, self._head.identity)
        codes_folder.sweep(self._codes_folder, alive)

    def _find_field_user(self, except_id: str, name: str, kind: str) -> str | None:
        """Return the id of another document that has a value of a field, or in an object of it."""
        written = [document for id_, document in self._written.items() if id_ != except_id]
        if user := find_field_user(written, name, kind):
            return user
        reader, replaced = self._reader, [except_id, *self._written]
        found = facts.build_field_query(reader.index, name, is_object=kind == "object")
        others = facts.all_but(reader.match_any(record.ID, replaced))
        users = reader.find_records(facts.all_of(found, others), 1)
        return users[0].id if users else None

    def abandon(self) -> None:
        """Forget the unfinished document, if there is one, and commit those before it."""
        with translate_errors(self._index_folder):
            if self._open is not None:
                self._builder.cut(self._open.codes_before)
                self._fields = self._open.fields_before
                self._open = None
            if self._written:
                self._commit()

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        existing = self.read_source_hashes(list(dict.fromkeys(ids)))
        with translate_errors(self._index_folder):
            for document_id in existing:
                self._writer.delete_documents_by_term(record.ID, document_id)
            if existing:
                self._commit()
        return len(existing)

    def purge(self) -> None:
        """Write again what lies in one file with deleted passages, and remove all files of before.

        tantivy removes a segment of which everything is deleted. Passages keep their numbers.
        """
        with translate_errors(self._index_folder):
            beside = list_beside_deleted(self._records_folder).tolist()
            for start in range(0, len(beside), PAGE):
                self._write_again(beside[start : start + PAGE])
            self._writer.commit()
            self._writer.garbage_collect_files()
            self._reader = RecordReader(self._records_folder)
            alive = self._reader.list_numbers(record.PASSAGE)
            codes_folder.compact(self._codes_folder, alive, self._head.identity, 0.0)
            codes_folder.sweep(self._codes_folder, alive)
            codes_folder.empty_last(self._codes_folder, alive, self._head.identity)

    def _write_again(self, passages: Sequence[int]) -> None:
        """Put the records of some passages into a new segment."""
        records, schema = self._reader.read_records(passages), self._reader.index.schema
        numbers = tantivy.Query.term_set_query(schema, record.PASSAGE, list(passages))
        self._writer.delete_documents_by_query(numbers)
        for own in records.values():
            if own is None:
                raise DamagedRowError(self._index_folder.stem, None)
            language = find_language(json.loads(own.metadata), own.text)
            terms = stem_text(own.text, language)
            self._writer.add_document(record.to_document(own, terms))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_kept = True
        try:
            with translate_errors(self._index_folder):
                if kind is None:
                    self.abandon()
                    self._compact()
                    self._writer.wait_merging_threads()
                    self._reader = RecordReader(self._records_folder)
                is_kept = self._keeps_empty or len(self._reader) > 0
        finally:
            self._builder.discard()
            del self._writer
            if self._lock is not None and is_kept:
                self._lock.release()
            elif self._lock is not None:
                remove_index(self._index_folder, self._lock)
