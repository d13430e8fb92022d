"""The reference backend: in memory, every span of every passage scored, BM25 from its formula.

All others are tested against it. Nothing here is approximate, and it shares nothing with the
embedded backend except `text.stems`: without the same terms no two rankings could agree.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NoReturn

from hybrid_search.backends.base import (
    Backend,
    Writer,
    find_field_user,
    refuse_options,
    refuse_times,
)
from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.turn_layout import build_layout
from hybrid_search.backends.types import (
    FACETS,
    FoundPassages,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    Refusal,
    Request,
    ScannedPassage,
    StoredPassage,
    check_spec,
    find_codes_fault,
)
from hybrid_search.backends.window import choose_window
from hybrid_search.errors import IndexMissingError, InputError, UsageError
from hybrid_search.text.best_passages import best_passages
from hybrid_search.text.filters import Scalar, leaves, matches_condition, new_fields
from hybrid_search.text.languages import FIELD as LANGUAGE
from hybrid_search.text.languages import find_language, list_languages
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.stems import count_stems, count_text_stems
from hybrid_search.text.types import Entry, Metadata, WordCodes

_Key = tuple[str, int]
"""The id of a document, and the number of a passage in it."""

K1, B = 1.2, 0.75
EXACT_LENGTHS = 24
"""What is beyond so many terms is rounded to four bits."""


@dataclass(slots=True, eq=False)
class _Passage:
    entry: Entry
    terms: Counter[str]


@dataclass(slots=True, eq=False)
class _Index:
    spec: IndexSpec
    fields: dict[str, str] = field(default_factory=dict)
    documents: dict[str, list[_Passage]] = field(default_factory=dict)

    def passages(self) -> dict[_Key, _Passage]:
        return {
            (name, number): passage
            for name, passages in self.documents.items()
            for number, passage in enumerate(passages)
        }

    def list_languages(self) -> list[str]:
        """Return the languages of the documents, by which the words of phrases are cut."""
        documents = (passages[0].entry.document for passages in self.documents.values())
        return list_languages(document.metadata.get(LANGUAGE) for document in documents)

    def allowed_passages(self, request: Request) -> dict[_Key, _Passage]:
        """Return the passages that the conditions and speakers of a request leave."""
        return {
            key: passage
            for key, passage in self.passages().items()
            if _is_allowed(passage.entry, request)
        }


class MemoryWriter(Writer):
    """Writes into a `MemoryBackend`; a document appears when its last passage is written."""

    def __init__(self, indexes: dict[str, _Index], name: str, *, is_new: bool) -> None:
        self._indexes, self._name, self._is_new = indexes, name, is_new
        self._index = indexes[name]
        self._pending: list[_Passage] | None = None

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed."""
        documents = self._index.documents
        return {
            document_id: documents[document_id][0].entry.source_hash
            for document_id in ids
            if document_id in documents
        }

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Add passages; refuse a document whose metadata does not fit the index's fields."""
        return [refusal for entry in entries if (refusal := self._add_entry(entry))]

    def _add_entry(self, entry: Entry) -> Refusal | None:
        if entry.passage.ordinal == 0:
            try:
                self._index.fields |= new_fields(
                    self._index.fields,
                    entry.document.metadata,
                    partial(self._find_user, entry.document.id),
                    can_free=True,
                )
            except InputError as error:
                self._pending = None
                return Refusal(entry.document, str(error), error.detail)
            self._pending = []
        if self._pending is not None:
            language = find_language(entry.document.metadata, entry.text)
            terms = count_text_stems(entry.text, language)
            self._pending.append(_Passage(entry, terms))
            if entry.is_last:
                self._index.documents[entry.document.id] = self._pending
        return None

    def _find_user(self, but: str, name: str, kind: str) -> str | None:
        documents = self._index.documents.items()
        others = (passages[0].entry.document for id_, passages in documents if id_ != but)
        return find_field_user(others, name, kind)

    def abandon(self) -> None:
        """Forget the unfinished document, if there is one."""
        self._pending = None

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        return sum(self._index.documents.pop(document_id, None) is not None for document_id in ids)

    def __exit__(self, *_: object) -> None:
        if self._is_new and not self._index.documents:
            self._indexes.pop(self._name, None)


class MemoryBackend(Backend):
    """Indexes that live as long as this object."""

    def __init__(self) -> None:
        self._indexes: dict[str, _Index] = {}

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing; one that does not exist stays if a document is written."""
        is_new = index not in self._indexes
        self._make_index(index, spec)
        return MemoryWriter(self._indexes, index, is_new=is_new)

    def _make_index(self, index: str, spec: IndexSpec) -> None:
        memory_index = self._indexes.setdefault(check_index_name(index), _Index(spec))
        check_spec(index, memory_index.spec, spec)

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists; options are an error, as only servers have."""
        refuse_options(options)
        self._make_index(index, spec)

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> NoReturn:
        """Raise UsageError: there is one version of each index."""
        del index, spec, options
        raise UsageError(
            "an index in memory has no versions: ingest into an index of another name, "
            "and drop this one"
        )

    def read_head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """Return the spec of `index` and its metadata fields (dotted name -> type)."""
        memory_index = self._get_index(index)
        return memory_index.spec, dict(sorted(memory_index.fields.items()))

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count what it contains."""
        spec, index_fields = self.read_head(index)
        documents = self._get_index(index).documents
        passages = self._get_index(index).passages().values()
        spans = sum(passage.entry.spans for passage in passages)
        return IndexInfo(spec, index_fields, len(documents), len(passages), spans)

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
        return sorted(self._indexes)

    def iterate_passages(self, index: str, *, full: bool = False) -> Iterator[ListedPassage]:
        """Yield every passage, document by document."""
        memory_index = self._get_index(index)
        for key, passage in memory_index.passages().items():
            entry = passage.entry
            fault = find_codes_fault(entry.tokens, memory_index.spec.dimension) if full else None
            yield ListedPassage(
                key,
                entry.document.id,
                entry.passage.ordinal,
                entry.passages,
                entry.source_hash,
                (fault,) if fault else (),
            )

    def list_passages(self, index: str, document_id: str) -> list[Key]:
        """Return the passages of a document in their order."""
        passages = self._get_index(index).documents.get(document_id, [])
        return [(document_id, number) for number in range(len(passages))]

    def scan_codes(
        self, index: str, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield every passage with its word codes, document by document."""
        refuse_times(written_since)
        passages = self._get_index(index).passages()
        for position, (key, passage) in enumerate(passages.items()):
            entry = passage.entry
            if after is None or position > after:
                yield ScannedPassage(
                    key,
                    entry.document.id,
                    entry.passage.ordinal,
                    entry.passage.start,
                    entry.tokens,
                    position,
                )

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the best passages of both legs, by scoring everything."""
        memory_index = self._get_index(index)
        lexical = _score_words(memory_index, request) if request.lexical else {}
        passages = memory_index.allowed_passages(request)
        keys = sorted(passages) if request.semantic else []
        codes = {key: _find_codes(passages[key].entry, request) for key in keys}
        cut = partial(_cut, window=request.window)
        best = best_passages(request.vector, codes, cut, request.span_filter)
        ranked = sorted(lexical, key=lambda key: (-lexical[key], key))
        found_keys = dict.fromkeys([*_cut(ranked, request.window), *best.codes, *best.damaged])
        return FoundPassages(
            [
                replace(passage, cosines=best.cosines.get(passage.key))
                for passage in self.read_passages(index, request, list(found_keys))
            ],
            "exact" if request.semantic else "not asked",
        )

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes."""
        entries = self._entries_by_key(index, keys)
        scores = _score_words(self._get_index(index), request)
        return [
            StoredPassage(key, key[0], key[1], scores.get(key, 0.0), _find_codes(entry, request))
            for key, entry in entries.items()
        ]

    def find_quoting(self, index: str, quotation: str) -> dict[Key, str]:
        """Return all passages: each of them may contain the quotation."""
        del quotation
        return {key: key[0] for key in self._get_index(index).passages()}

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        return {
            key: PassageContent(
                entry.passage.start,
                entry.text,
                build_layout(entry),
                json.dumps(entry.document.metadata),
            )
            for key, entry in self._entries_by_key(index, keys).items()
        }

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        memory_index = self._get_index(index)
        matching = {
            key[0]: memory_index.documents[key[0]][0].entry.document.metadata
            for key in _score_words(memory_index, request)
        }
        return {name: _count_values(name, matching.values()) for name in fields}

    def _entries_by_key(self, index: str, keys: Sequence[Key]) -> dict[Key, Entry]:
        passages: dict[Key, _Passage] = self._get_index(index).passages()
        return {key: passages[key].entry for key in keys if key in passages}

    def drop_index(self, index: str) -> None:
        """Remove `index` and everything in it."""
        self._get_index(index)
        del self._indexes[index]

    def purge(self, index: str) -> None:
        """Do nothing but find the index: a deleted document is gone at once."""
        self._get_index(index)

    def close(self) -> None:
        """Do nothing: indexes live as long as this object."""

    def _get_index(self, index: str) -> _Index:
        if check_index_name(index) not in self._indexes:
            existing = list_names(self.list_indexes(), index)
            raise IndexMissingError(
                f"there is no index {index!r} in memory (indexes there: {existing}): "
                "ingest into it first"
            )
        return self._indexes[index]


def _score_words(memory_index: _Index, request: Request) -> dict[_Key, float]:
    """Return Lucene's BM25 score of each passage that matches.

    It is the sum over terms of idf * tf / (tf + k1 * (1 - b + b * length / average)), with
    idf = ln(1 + (N - n + 0.5) / (n + 0.5)). Lengths are rounded as Lucene does.
    """
    passages = memory_index.passages()
    average = sum(passage.terms.total() for passage in passages.values()) / max(len(passages), 1)
    scores: defaultdict[_Key, float] = defaultdict(float)
    for term in count_stems(request.phrase, memory_index.list_languages()).elements():
        matching_keys = [key for key, passage in passages.items() if term in passage.terms]
        count = len(matching_keys)
        idf = math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
        for key in matching_keys:
            terms = passages[key].terms
            norm = K1 * (1 - B + B * round_length(terms.total()) / average)
            scores[key] += idf * terms[term] / (terms[term] + norm)
    allowed = memory_index.allowed_passages(request)
    return {key: score for key, score in scores.items() if key in allowed}


def _is_allowed(entry: Entry, request: Request) -> bool:
    document = entry.document
    return entry.is_said_by(request.speakers) and all(
        matches_condition(condition, document.id, document.metadata)
        for condition in request.conditions
    )


def round_length(length: int) -> int:
    """Return a number of terms as Lucene and tantivy keep it, in a byte: exact up to 40."""
    rest = length - EXACT_LENGTHS
    dropped = max(0, rest.bit_length() - 4)
    return length if rest < 0 else EXACT_LENGTHS + (rest >> dropped << dropped)


def _cut(ranked: Sequence[_Key], window: int) -> list[_Key]:
    return [ranked[position] for position in choose_window((key[0] for key in ranked), window)]


def _find_codes(entry: Entry, request: Request) -> WordCodes:
    """Return the word codes of a passage, with its turns if the request asks for speakers."""
    return replace(entry.tokens, turns=entry.turns) if request.speakers else entry.tokens


def _count_values(name: str, all_metadata: Iterable[Metadata]) -> dict[Scalar, int]:
    """Count the documents that have each value of the field, the most frequent values first."""
    values = (
        {value for path, _, value in leaves(metadata) if path == name and value is not None}
        for metadata in all_metadata
    )
    counts = Counter(value for document_values in values for value in document_values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FACETS])
