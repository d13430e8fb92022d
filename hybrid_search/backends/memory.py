"""The reference backend: in memory, every span of every passage scored, BM25 from its formula.

All other backends are tested against it. Nothing here is approximate, and it shares nothing with
the embedded backend except how a text is cut into stems (`text.stems`): without the same terms no
two rankings could agree.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import NoReturn, Self

from hybrid_search.backends import index_names
from hybrid_search.backends.base import Backend, Writer, refuse_options, refuse_times
from hybrid_search.backends.codes_fault import find_codes_fault
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
    RejectedDocument,
    Request,
    ScannedPassage,
    StoredPassage,
    check_spec,
)
from hybrid_search.backends.window import choose_window
from hybrid_search.errors import IndexMissingError, InputError, UsageError
from hybrid_search.text.best_passages import best_passages
from hybrid_search.text.filters import Condition, Scalar, leaves, matches_condition, new_fields
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.stems import count_stems, count_text_stems
from hybrid_search.text.types import Entry, Metadata, WordCodes

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

    def passages(
        self, conditions: Sequence[Condition] = (), speakers: Sequence[str] = ()
    ) -> dict[tuple[str, int], _Passage]:
        allowed = [
            (name, passages)
            for name, passages in self.documents.items()
            if all(
                matches_condition(condition, name, passages[0].entry.document.metadata)
                for condition in conditions
            )
        ]
        return {
            (name, number): passage
            for name, passages in allowed
            for number, passage in enumerate(passages)
            if passage.entry.is_said_by(speakers)
        }


class MemoryWriter:
    """Writes into a `MemoryBackend`; a document appears when its last passage is written."""

    def __init__(self, index: _Index, close: Callable[[], None]) -> None:
        self._index, self._close = index, close
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
                find_user = partial(self._find_field_user, entry.document.id)
                self._index.fields |= new_fields(
                    self._index.fields, entry.document.metadata, find_user, can_free=True
                )
            except InputError as error:
                self._pending = None
                return Refusal(entry.document, str(error), error.detail)
            self._pending = []
        if self._pending is not None:
            self._pending.append(_Passage(entry, count_text_stems(entry.text)))
            if entry.is_last:
                self._index.documents[entry.document.id] = self._pending
        return None

    def _find_field_user(self, except_id: str, name: str, kind: str) -> str | None:
        """Return the id of another document that has a value of a field, or in an object of it."""
        is_object = kind == "object"
        for id_, passages in self._index.documents.items():
            for path, _, value in leaves(passages[0].entry.document.metadata):
                is_used = path.startswith(f"{name}.") if is_object else path == name
                if is_used and value is not None and id_ != except_id:
                    return id_
        return None

    def abandon(self) -> None:
        """Forget the unfinished document, if there is one."""
        self._pending = None

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""
        return sum(self._index.documents.pop(document_id, None) is not None for document_id in ids)

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Do nothing: rejected documents are only in the rejects file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()


class MemoryBackend(Backend):
    """Indexes that live as long as this object."""

    def __init__(self) -> None:
        self._indexes: dict[str, _Index] = {}

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing; one that does not exist stays if a document is written."""
        is_new = index not in self._indexes
        memory_index = self._make_index(index, spec)

        def close() -> None:
            if is_new and not memory_index.documents:
                self._indexes.pop(index, None)

        return MemoryWriter(memory_index, close)

    def _make_index(self, index: str, spec: IndexSpec) -> _Index:
        memory_index = self._indexes.setdefault(index_names.check_index_name(index), _Index(spec))
        check_spec(index, memory_index.spec, spec)
        return memory_index

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
        memory_index = self._get_index(index)
        passages = memory_index.passages().values()
        spans = sum(passage.entry.spans for passage in passages)
        return IndexInfo(
            memory_index.spec,
            dict(sorted(memory_index.fields.items())),
            len(memory_index.documents),
            len(passages),
            spans,
        )

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
        lexical = self._bm25_scores(memory_index, request) if request.lexical else {}
        passages = memory_index.passages(request.conditions, request.speakers)
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

    def _bm25_scores(self, memory_index: _Index, request: Request) -> dict[tuple[str, int], float]:
        """Return Lucene's BM25 score of each passage that matches.

        It is the sum over terms of idf * tf / (tf + k1 * (1 - b + b * length / average)), with
        idf = ln(1 + (N - n + 0.5) / (n + 0.5)). Lengths are rounded as Lucene does.
        """
        passages = memory_index.passages()
        exact_lengths = {key: passage.terms.total() for key, passage in passages.items()}
        average = sum(exact_lengths.values()) / max(len(exact_lengths), 1)
        lengths = {key: round_length(length) for key, length in exact_lengths.items()}
        scores: dict[tuple[str, int], float] = {}
        for term in count_stems(request.phrase).elements():
            matching_keys = [key for key, passage in passages.items() if term in passage.terms]
            count = len(matching_keys)
            idf = math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
            for key in matching_keys:
                tf = passages[key].terms[term]
                norm = K1 * (1 - B + B * lengths[key] / average)
                scores[key] = scores.get(key, 0.0) + idf * tf / (tf + norm)
        allowed = memory_index.passages(request.conditions, request.speakers)
        return {key: score for key, score in scores.items() if key in allowed}

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes."""
        entries = self._entries_by_key(index, keys)
        scores = self._bm25_scores(self._get_index(index), request)
        return [
            StoredPassage(key, key[0], key[1], scores.get(key, 0.0), _find_codes(entry, request))
            for key, entry in entries.items()
        ]

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        entries = self._entries_by_key(index, keys).items()
        return {
            key: PassageContent(
                entry.passage.start,
                entry.text,
                build_layout(entry),
                json.dumps(entry.document.metadata),
            )
            for key, entry in entries
        }

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        memory_index = self._get_index(index)
        matching = {
            key[0]: memory_index.documents[key[0]][0].entry.document.metadata
            for key in self._bm25_scores(memory_index, request)
        }
        return {name: _count_values(name, matching.values()) for name in fields}

    def _entries_by_key(self, index: str, keys: Sequence[Key]) -> dict[Key, Entry]:
        passages: dict[Key, _Passage] = self._get_index(index).passages()
        return {key: passages[key].entry for key in keys if key in passages}

    def drop_index(self, index: str) -> None:
        """Remove `index` and everything in it."""
        self._get_index(index)
        del self._indexes[index]

    def close(self) -> None:
        """Do nothing: indexes live as long as this object."""

    def _get_index(self, index: str) -> _Index:
        if index_names.check_index_name(index) not in self._indexes:
            existing = list_names(self.list_indexes(), index)
            raise IndexMissingError(
                f"there is no index {index!r} in memory (indexes there: {existing}): "
                "ingest into it first"
            )
        return self._indexes[index]


def round_length(length: int) -> int:
    """Return a number of terms as Lucene and tantivy keep it, in a byte: exact up to 40."""
    rest = length - EXACT_LENGTHS
    dropped = max(0, rest.bit_length() - 4)
    return length if rest < 0 else EXACT_LENGTHS + (rest >> dropped << dropped)


def _cut(ranked: Sequence[tuple[str, int]], window: int) -> list[tuple[str, int]]:
    """Return the passages within the window of a leg."""
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
