"""Reads one commit of the records of an index: searches by words and conditions, and contents.

tantivy's files never change once they are written, and each ends with a checksum, which tantivy
itself does not compare: it is compared here when a file is first opened.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded import facts, record
from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.embedded.record import Record
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.text.filters import Scalar, widen
from hybrid_search.text.languages import FIELD as LANGUAGE
from hybrid_search.text.languages import list_languages
from hybrid_search.text.stems import count_stems, list_quoted_stems

META = "meta.json"
PARTS = ("idx", "pos", "term", "store", "fast", "fieldnorm")
"""The files that each of tantivy's segments has."""

SETTINGS = {"docstore_compression": "lz4", "docstore_blocksize": 16384}
"""What tantivy records of how it compresses what it stores."""

FACTOR = 2.2
"""tantivy multiplies by k1 + 1, which Lucene has not done since version 8."""

TRIES = 5
"""How often an index is opened that is written at the same moment."""

_TRAILER = struct.Struct("<II")
_MAGIC = 1337

_checked: set[tuple[object, ...]] = set()
"""Files whose checksum this process has compared, by what changes with their content."""


class RecordReader:
    """One commit of the records in `folder`; later ones are not seen.

    Its number, `stamp`, grows with each. DamagedFileError is raised if a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        for _ in range(TRIES):
            data = read_meta(folder)
            try:
                check_files(folder, data)
                self.index, self.searcher = _open(folder, data)
            except (DamagedFileError, ValueError):
                if read_meta(folder) == data:
                    raise
                continue  # a writer has merged segments meanwhile
            if read_meta(folder) == data:
                break
        self.stamp: int = data["opstamp"]

    def __len__(self) -> int:
        return self.searcher.num_docs

    def list_fields(self) -> dict[str, str]:
        """Return the metadata fields that documents have: dotted name -> type."""
        fields: dict[str, str] = {}
        everything = tantivy.Query.all_query()
        for term, _ in self.searcher.terms_with_prefix(record.FIELDS, "", everything):
            kind, _, name = term.partition(":")
            fields[name] = widen(fields.get(name, kind), kind) or kind
        return dict(sorted(fields.items()))

    @cached_property
    def languages(self) -> list[str]:
        """The languages of the documents, by which the words of phrases are cut."""
        prefix, everything = facts.prefix_of(LANGUAGE), tantivy.Query.all_query()
        counts = self.searcher.terms_with_prefix(facts.FIELD, prefix, everything)
        return list_languages(facts.read_fact(fact, LANGUAGE) for fact, _ in counts)

    def count_spans(self) -> int:
        """Return how many covering windows all passages have."""
        total = {"spans": {"sum": {"field": record.SPANS}}}
        answer: Any = self.searcher.aggregate(tantivy.Query.all_query(), total)
        return int(answer["spans"]["value"] or 0)

    def list_numbers(self, field: str, query: tantivy.Query | None = None) -> Numbers:
        """Return the values of a number field of what a query finds, ascending."""
        hits = self._search_in_order(field, query)
        return np.fromiter((value for value, _ in hits), np.int64, len(hits))

    def list_passages(self, query: tantivy.Query | None = None) -> tuple[Numbers, Numbers]:
        """Return the numbers of the passages that a query finds, ascending, and their documents."""
        hits = self._search_in_order(record.PASSAGE, query)
        addresses = [address for _, address in hits]
        documents = self.searcher.fast_field_values(record.DOCUMENT, addresses) if hits else []
        return (
            np.fromiter((value for value, _ in hits), np.int64, len(hits)),
            np.array(documents, np.int64),
        )

    def _search_in_order(
        self, field: str, query: tantivy.Query | None, limit: int | None = None
    ) -> list[tuple[Any, tantivy.DocAddress]]:
        if not len(self):
            return []
        return self.searcher.search(
            query or tantivy.Query.all_query(),
            limit=limit or len(self),
            count=False,
            order_by_field=field,
            order=tantivy.Order.Asc,
        ).hits

    def match_after(self, passage: int) -> tantivy.Query:
        """Return the query of the passages behind one."""
        return tantivy.Query.range_query(
            self.index.schema,
            record.PASSAGE,
            tantivy.FieldType.Unsigned,
            lower_bound=passage,
            include_lower=False,
        )

    def match_firsts(self) -> tantivy.Query:
        """Return the query of the first passage of each document."""
        return tantivy.Query.term_query(self.index.schema, record.ORDINAL, 0)

    def match_any(self, field: str, values: Iterable[Any]) -> tantivy.Query:
        """Return the query of what has one of some values; sooner for hundreds than a set."""
        schema = self.index.schema
        return facts.any_of(tantivy.Query.term_query(schema, field, value) for value in values)

    def match_phrase(self, phrase: str) -> tantivy.Query:
        """Return the query of the words of a phrase, a repeated one as often as it stands there."""
        schema = self.index.schema
        return facts.any_of(
            tantivy.Query.boost_query(
                tantivy.Query.term_query(schema, record.TERMS, stem, "freq"), float(count)
            )
            for stem, count in count_stems(phrase, self.languages).items()
        )

    def match_quotation(self, quotation: str) -> tantivy.Query:
        """Return the query of the passages with all stems of a quotation, in one language.

        Stop words have none: of a quotation that consists of them every passage is found.
        """
        schema, everything = self.index.schema, tantivy.Query.all_query()
        return facts.any_of(
            facts.all_of(
                everything,
                *(
                    tantivy.Query.term_query(schema, record.TERMS, stem)
                    for stem in list_quoted_stems(quotation, language)
                ),
            )
            for language in self.languages
        )

    def score(
        self, phrase: str, limit: int, within: tantivy.Query | None = None
    ) -> dict[int, float]:
        """Return the BM25 scores of the passages that contain a word of a phrase, best first.

        Equal scores are in the order of the numbers. If more have the last score than `limit` has
        room for, none of them is returned. `within` is what a passage must be besides.
        """
        query = self.match_phrase(phrase)
        if within is not None:
            query = facts.all_of(tantivy.Query.const_score_query(within, 0.0), query)
        hits = self.searcher.search(query, limit=max(1, limit), count=False).hits
        if len(hits) == limit < len(self):
            hits = [hit for hit in hits if hit[0] > hits[-1][0]]
        numbers = self.searcher.fast_field_values(record.PASSAGE, [address for _, address in hits])
        scored = [
            (-score / FACTOR, int(number))
            for (score, _), number in zip(hits, numbers, strict=True)
            if number is not None
        ]
        return {number: -negative for negative, number in sorted(scored)}

    def read_records(self, passages: Sequence[int]) -> dict[int, Record | None]:
        """Return the records of those of `passages` that exist; None where one is damaged."""
        addresses: dict[int, tantivy.DocAddress] = {}
        for start in range(0, len(passages), 1000):
            block = passages[start : start + 1000]
            query = self.match_any(record.PASSAGE, block)
            addresses |= dict(self._search_in_order(record.PASSAGE, query, len(block)))
        return {
            passage: self._read(addresses[passage]) for passage in passages if passage in addresses
        }

    def find_records(self, query: tantivy.Query, limit: int | None = None) -> list[Record]:
        """Return the sound records that a query finds, in the order of passages."""
        hits = self._search_in_order(record.PASSAGE, query, limit)
        return [found for _, address in hits if (found := self._read(address))]

    def _read(self, address: tantivy.DocAddress) -> Record | None:
        try:
            return record.read(self.searcher.doc(address))
        except (ValueError, TypeError, struct.error):
            return None

    def count_values(self, name: str, within: tantivy.Query) -> dict[Scalar, int]:
        """Return how many passages of a query's have each value of a metadata field."""
        prefix = facts.prefix_of(name)
        counts = self.searcher.terms_with_prefix(facts.FIELD, prefix, within)
        return {facts.read_fact(fact, name): count for fact, count in counts}


def read_meta(folder: Path) -> dict[str, Any]:
    """Return tantivy's list of segments; raise DamagedFileError if it is not one of ours."""
    path = folder / META
    if path.exists() and not path.is_file():  # a pipe would wait for its writer
        raise DamagedFileError(f"{path} is not a plain file")
    try:
        meta: dict[str, Any] = json.loads(path.read_bytes())
        if meta["index_settings"] != SETTINGS or type(meta["opstamp"]) is not int:
            raise ValueError("its settings are others")
        if not all(map(_is_segment, meta["segments"])):
            raise ValueError("it has an impossible segment")
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path} is missing") from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise DamagedFileError(f"{path} is not the one that was written: {error}") from error
    return meta


def _is_segment(segment: Mapping[str, Any]) -> bool:
    passages, deletes = segment["max_doc"], segment["deletes"]
    deleted = deletes["num_deleted_docs"] if deletes else 0
    return type(passages) is int and 0 <= deleted <= passages


def list_files(meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the files of all segments."""
    for segment in meta["segments"]:
        name = str(segment["segment_id"]).replace("-", "")
        yield from (f"{name}.{part}" for part in PARTS)
        if segment["deletes"]:
            yield f"{name}.{segment['deletes']['opstamp']}.del"


def check_files(folder: Path, meta: Mapping[str, Any]) -> None:
    """Compare each file with its checksum, unless this process has; raise DamagedFileError."""
    for name in list_files(meta):
        path = folder / name
        try:
            status = path.stat()
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if identity not in _checked:
                if not path.is_file() or not _is_sound(path.read_bytes()):
                    raise DamagedFileError(f"{path} is not the file that was written")
                _checked.add(identity)
        except FileNotFoundError as error:
            raise DamagedFileError(f"{path} is missing") from error


def _is_sound(data: bytes) -> bool:
    """Return whether a file of tantivy is the one that its footer describes."""
    try:
        length, magic = _TRAILER.unpack(data[-_TRAILER.size :])
        end = len(data) - _TRAILER.size - length
        footer = json.loads(data[max(0, end) : -_TRAILER.size])
        return magic == _MAGIC and bool(footer["crc"] == crc32(memoryview(data)[:end]))
    except (struct.error, ValueError, TypeError, LookupError, RecursionError):
        return False


def _open(folder: Path, meta: Mapping[str, Any]) -> tuple[tantivy.Index, tantivy.Searcher]:
    """Return tantivy's index, opened; tantivy must write a lock: if it may not, by links."""
    try:
        index, searcher = _open_reader(folder)
    except ValueError as error:
        if not any(sign in str(error) for sign in ("PermissionDenied", "ReadOnlyFilesystem")):
            raise
        index, searcher = open_view(folder, meta)
    if index.schema != record.build_schema():
        raise DamagedFileError(f"the schema in {folder / META} is not the one that was written")
    return index, searcher


def _open_reader(folder: Path) -> tuple[tantivy.Index, tantivy.Searcher]:
    index = tantivy.Index.open(str(folder))
    index.config_reader("manual")  # a thread that watches for commits is of no use
    return index, index.searcher()


def open_view(folder: Path, meta: Mapping[str, Any]) -> tuple[tantivy.Index, tantivy.Searcher]:
    """Return an index of these segments, opened in a folder of links that is gone afterwards."""
    with tempfile.TemporaryDirectory() as view:
        for name in list_files(meta):
            try:
                (Path(view) / name).symlink_to((folder / name).absolute())
            except OSError:  # Windows lets few make links
                shutil.copyfile(folder / name, Path(view) / name)
        (Path(view) / META).write_text(json.dumps(meta))
        return _open_reader(Path(view))
