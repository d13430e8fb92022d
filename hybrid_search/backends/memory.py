"""The reference: everything in this process's memory, every span of every passage scored, BM25 from its formula. It judges all other backends.

Nothing here is approximate and nothing is shared with the embedded backend but the stemmer, SQLite's ``porter unicode61``, without which no two
term lists could agree.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NoReturn, Self

from hybrid_search.backends import names
from hybrid_search.backends.base import (
    FACETS,
    Candidates,
    Content,
    IndexInfo,
    IndexSpec,
    Key,
    Listed,
    Refusal,
    Refused,
    Request,
    Stored,
    check_spec,
)
from hybrid_search.backends.embedded.schema import TOKENIZER
from hybrid_search.backends.layout import layout
from hybrid_search.backends.marks import CLOSE, OPEN, places
from hybrid_search.errors import IndexMissingError, InputError, UsageError
from hybrid_search.filters import Condition, Scalar, holds, leaves, new_fields
from hybrid_search.tokens import best_passages
from hybrid_search.types import Entry, Metadata
from hybrid_search.words import query_terms

K1, B = 1.2, 0.75


class Stemmer:
    """Terms of a text as SQLite's full-text search sees them."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            f'CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = "{TOKENIZER}");CREATE VIRTUAL TABLE terms USING fts5vocab (texts, instance);'
        )

    def terms(self, text: str) -> Counter[str]:
        """How often each term occurs in `text`."""
        self._connection.execute("INSERT INTO texts (rowid, text) VALUES (1, ?)", (text,))
        found = Counter(row[0] for row in self._connection.execute("SELECT term FROM terms"))
        self._connection.execute("DELETE FROM texts")
        return found

    def matching(self, text: str, phrase: str) -> list[tuple[int, int]]:
        """Start and end of the words of `text` that are a term of `phrase`."""
        words = " OR ".join(f'"{word}"' for word in query_terms(phrase))
        self._connection.execute("INSERT INTO texts (rowid, text) VALUES (1, ?)", (text,))
        row = self._connection.execute("SELECT highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?", (OPEN, CLOSE, words or '""')).fetchone()
        self._connection.execute("DELETE FROM texts")
        return places(row[0]) if row else []


@dataclass(slots=True, eq=False)
class _Passage:
    entry: Entry
    terms: Counter[str]


@dataclass(slots=True, eq=False)
class _Index:
    spec: IndexSpec
    fields: dict[str, str] = field(default_factory=dict)
    documents: dict[str, list[_Passage]] = field(default_factory=dict)

    def passages(self, conditions: Sequence[Condition] = ()) -> dict[tuple[str, int], _Passage]:
        return {
            (name, number): passage
            for name, passages in self.documents.items()
            if all(holds(condition, name, passages[0].entry.document.metadata) for condition in conditions)
            for number, passage in enumerate(passages)
        }


class MemoryWriter:
    """Writes into a `MemoryBackend`; a document appears when its last passage is written."""

    def __init__(self, index: _Index, stemmer: Stemmer) -> None:
        self._index, self._stemmer = index, stemmer
        self._held: list[_Passage] | None = None

    def known(self, ids: Sequence[str]) -> dict[str, str]:
        """The source hash of each of `ids` that is wholly indexed."""
        there = self._index.documents
        return {each: there[each][0].entry.source_hash for each in ids if each in there}

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Take in passages, unless their document does not fit the index's fields."""
        return [refusal for entry in entries if (refusal := self._put(entry))]

    def _put(self, entry: Entry) -> Refusal | None:
        if entry.passage.ordinal == 0:
            try:
                self._index.fields |= new_fields(self._index.fields, entry.document.metadata)
            except InputError as error:
                self._held = None
                return Refusal(entry.document, str(error))
            self._held = []
        if self._held is not None:
            self._held.append(_Passage(entry, self._stemmer.terms(entry.text)))
            if entry.last:
                self._index.documents[entry.document.id] = self._held
        return None

    def abandon(self) -> None:
        """Forget the document whose last passage has not come."""
        self._held = None

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents; how many there were."""
        return sum(self._index.documents.pop(each, None) is not None for each in ids)

    def note(self, refused: Sequence[Refused]) -> None:
        """Nothing: the rejects file is all that there is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None


class MemoryBackend:
    """Indexes that live as long as this object."""

    def __init__(self) -> None:
        self._indexes: dict[str, _Index] = {}
        self._stemmer = Stemmer()

    def writer(self, index: str, spec: IndexSpec) -> MemoryWriter:
        """Open `index` for writing, and make it if it is not there. Raises ModelError."""
        held = self._indexes.setdefault(names.checked(index), _Index(spec))
        check_spec(index, held.spec, spec)
        return MemoryWriter(held, self._stemmer)

    def create(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none. Raises UsageError for any options: those are for servers."""
        if options:
            raise UsageError(f"an index in memory has no {', '.join(options)}: that is for one on a server (--url opensearch+https://... )")
        with self.writer(index, spec):
            pass

    def head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """What `index` was made for, and its metadata fields. Raises IndexMissingError."""
        held = self._get(index)
        return held.spec, dict(sorted(held.fields.items()))

    def describe(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        held = self._get(index)
        passages = held.passages().values()
        spans = sum(each.entry.spans for each in passages)
        return IndexInfo(held.spec, dict(sorted(held.fields.items())), len(held.documents), len(passages), spans)

    def indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        return sorted(self._indexes)

    def walk(self, index: str) -> Iterator[Listed]:
        """Every passage, document by document."""
        for key, each in self._get(index).passages().items():
            entry = each.entry
            yield Listed(key, entry.document.id, entry.passage.ordinal, entry.passages, entry.source_hash)

    def candidates(self, index: str, request: Request) -> Candidates:
        """Both legs, by scoring everything."""
        held = self._get(index)
        lexical = self._bm25(held, request) if request.lexical else {}
        everything = held.passages(request.conditions) if request.semantic else {}
        semantic = best_passages(request.vector, {key: everything[key].entry.tokens for key in sorted(everything)}, request.window)
        ranked = sorted(lexical, key=lambda key: (-lexical[key], key))[: request.window]
        return Candidates({key: lexical[key] for key in ranked}, semantic, "exact")

    def _bm25(self, held: _Index, request: Request) -> dict[tuple[str, int], float]:
        """Lucene's BM25 of the passages that match: sum of idf * tf / (tf + k1 * (1 - b + b * length / average))."""
        everything = held.passages()
        lengths = {key: each.terms.total() for key, each in everything.items()}
        average = sum(lengths.values()) / max(len(lengths), 1)
        scores: dict[tuple[str, int], float] = {}
        for word in query_terms(request.phrase):
            for term in self._stemmer.terms(word):
                having = [key for key, each in everything.items() if term in each.terms]
                idf = math.log(1 + (len(everything) - len(having) + 0.5) / (len(having) + 0.5))
                for key in having:
                    tf = everything[key].terms[term]
                    scores[key] = scores.get(key, 0.0) + idf * tf / (tf + K1 * (1 - B + B * lengths[key] / average))
        allowed = held.passages(request.conditions)
        return {key: score for key, score in scores.items() if key in allowed}

    def complete(self, index: str, request: Request, keys: Sequence[Key], found: Candidates | None = None) -> list[Stored]:  # noqa: ARG002 # all is at hand
        """The passages of `keys` with BM25 and codes, in order; vanished ones left out."""
        there, scores = self._entries(index, keys), self._bm25(self._get(index), request)
        return [Stored(key, each.document.id, each.passage.ordinal, scores.get(key, 0.0), each.tokens) for key, each in there.items()]

    def contents(self, index: str, keys: Sequence[Key]) -> dict[Key, Content]:
        """What is shown of each passage of `keys` that is there."""
        there = self._entries(index, keys).items()
        return {key: Content(each.passage.start, each.text, layout(each), json.dumps(each.document.metadata)) for key, each in there}

    def highlights(self, index: str, request: Request, keys: Sequence[Key]) -> dict[Key, list[tuple[int, int]]]:
        """Start and end of the matching words of each passage of `keys` that has any."""
        marked = {key: self._stemmer.matching(each.text, request.phrase) for key, each in self._entries(index, keys).items()}
        return {key: found for key, found in marked.items() if found}

    def facets(self, index: str, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """How many matching documents have each value of each field."""
        held = self._get(index)
        matching = {key[0]: held.documents[key[0]][0].entry.document.metadata for key in self._bm25(held, request)}
        return {name: _counted(name, matching.values()) for name in fields}

    def _entries(self, index: str, keys: Sequence[Key]) -> dict[Key, Entry]:
        everything: dict[Key, _Passage] = self._get(index).passages()
        return {key: everything[key].entry for key in keys if key in everything}

    def hybrid(self, index: str, request: Request, alpha: float, technique: str) -> None:  # noqa: ARG002
        """None: there is no fusion but ours."""
        return

    def next_version(self, *_: object) -> NoReturn:
        """There are none. Raises UsageError."""
        raise UsageError("only an index on a server has versions: ingest into one of another name, and drop this one")

    def bodies(self, *_: object) -> NoReturn:
        """There are none. Raises UsageError."""
        raise UsageError("an index in memory is asked without requests: there is nothing to print. Use --url opensearch+https://...")

    def drop(self, index: str) -> None:
        """Remove `index`. Raises IndexMissingError."""
        self._get(index)
        del self._indexes[index]

    def close(self) -> None:
        """Nothing to close: what was ingested stays."""

    def _get(self, index: str) -> _Index:
        if names.checked(index) not in self._indexes:
            raise IndexMissingError(
                f"there is no index {index!r} in memory (indexes there: {', '.join(self.indexes()) or 'none'}): ingest into it first"
            )
        return self._indexes[index]


def _counted(name: str, many: Iterable[Metadata]) -> dict[Scalar, int]:
    """How many of `many` have each value of the field, the most frequent first."""
    values = ({value for path, _, value in leaves(each) if path == name and value is not None} for each in many)
    counts = Counter(value for each in values for value in each)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FACETS])
