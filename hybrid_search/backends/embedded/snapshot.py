"""An index as one commit left it: its records, which passages there are, and their codes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray

from hybrid_search.backends.embedded import codes_folder, facts, record
from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.near_passages import SearchedFiles, count_words, propose
from hybrid_search.backends.embedded.passage_documents import Numbers, PassageDocuments
from hybrid_search.backends.embedded.record_reader import RecordReader
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.backends.embedded.versions import (
    CODES,
    FIELDS,
    RECORDS,
    identify_file,
    read_note,
)
from hybrid_search.backends.embedded.word_search import WordSearch
from hybrid_search.backends.turn_layout import find_turns
from hybrid_search.backends.types import Request
from hybrid_search.text import codebook, word_codes
from hybrid_search.text.filters import Condition
from hybrid_search.text.types import Codebook, Floats, WordCodes

_log = logging.getLogger(__name__)

MOST_FILTERS = 16
"""What so many filters leave is remembered."""

WINDOWS_RANKED = 4
"""How many times the window is ranked first; more if that holds too few documents."""


_NONE = np.zeros(0, np.int64)


class Snapshot:
    """A commit of the index in `folder`, for several threads; later commits are not seen.

    Attributes:
        head: What the index is.
        records: What tantivy keeps of it.
        documents: Its passages, and the document of each.
        files: Its files of codes that can be read.

    Raises:
        DamagedFileError: If a file of tantivy is damaged.
    """

    def __init__(self, folder: Path, head: Head, earlier: Snapshot | None = None) -> None:
        self.head = head
        self._folder = head.version_folder(folder)
        self._name = folder.stem
        self.records = RecordReader(self._folder / RECORDS)
        self.documents = self._list_passages(earlier)
        self._by_file: Mapping[tuple[object, ...], CodesFile] = {}
        self.files: Sequence[CodesFile] = ()
        self._searches: dict[CodesFile, WordSearch] = {}
        self._filters: dict[tuple[object, ...], Numbers] = {}
        self._lock = threading.Lock()
        self._open_files(earlier)

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.documents.passages)

    def _list_passages(self, earlier: Snapshot | None) -> PassageDocuments:
        """Return all passages; those of an earlier commit need not be read if none was deleted."""
        if earlier is not None and len(earlier):
            known = earlier.documents
            query = self.records.match_after(int(known.passages[-1]))
            passages, documents = self.records.list_passages(query)
            if len(known.passages) + len(passages) == len(self.records):
                return PassageDocuments(
                    np.concatenate([known.passages, passages]),
                    np.concatenate([known.documents, documents]),
                )
        listed = PassageDocuments(*self.records.list_passages())
        if len(listed.passages) != len(self.records):
            raise DamagedFileError(
                f"{self._folder} has {len(listed.passages)} passages where {len(self.records)} "
                "were written"
            )
        return listed

    def _open_files(self, earlier: Snapshot | None) -> None:
        """Open the files of codes of these passages; those that were open stay open."""
        self._by_file = self._find_files(earlier._by_file if earlier else {})
        self.files = list(self._by_file.values())
        if earlier is not None:
            known = earlier._searches
            self._searches = {file: known[file] for file in self.files if file in known}

    def _find_files(
        self, known: Mapping[tuple[object, ...], CodesFile]
    ) -> dict[tuple[object, ...], CodesFile]:
        found: dict[tuple[object, ...], CodesFile] = {}
        for path in codes_folder.list_files(self._folder / CODES):
            key = (path, *identify_file(path))
            file = known.get(key) or self._open_file(path)
            if file is not None:
                found[key] = file
        return found

    def _open_file(self, path: Path) -> CodesFile | None:
        try:
            return CodesFile(path, self.head.identity)
        except DamagedFileError as error:
            path.stat()  # raises if it is gone
            _log.warning("index %r: %s", self._name, error)
            return None

    @cached_property
    def lost(self) -> Numbers:
        """The passages of which no file has codes, ascending."""
        kept = [file.passages for file in self.files]
        return np.setdiff1d(self.documents.passages, np.concatenate([_NONE, *kept]))

    @cached_property
    def lost_passages(self) -> frozenset[int]:
        """The same for look-ups."""
        return frozenset(self.lost.tolist())

    @cached_property
    def fields(self) -> dict[str, str]:
        """The metadata fields that documents have or had: dotted name -> type."""
        noted = read_note(self._folder, FIELDS) or {}
        return dict(sorted({**noted, **self.records.list_fields()}.items()))

    def find_places(self, passages: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return the document id and the ordinal of those of `passages` that are here.

        The passages of a document have numbers in a row, and the first is the document's. Its id is
        in the file of codes; only where that is lost the record is read.
        """
        places: dict[int, tuple[str, int]] = {}
        files = self._find_files_of(passages)
        documents = self.documents.find(passages).tolist()
        for passage, document, file in zip(passages, documents, files, strict=True):
            if document >= 0:
                name = file.ids.get(document) if file else None
                places[passage] = name or self._read_id(passage), passage - document
        return places

    def _read_id(self, passage: int) -> str:
        (found,) = self.records.read_records([passage]).values()
        return found.id if found else ""

    def _find_files_of(self, passages: Sequence[int]) -> list[CodesFile | None]:
        """Return for each passage the file whose range it is in."""
        lasts = [file.last for file in self.files]
        rows = np.searchsorted(np.array(lasts, np.int64), np.array(passages, np.int64)).tolist()
        return [self.files[row] if row < len(lasts) else None for row in rows]

    # Codes

    def read_stored_codes(self, passages: Sequence[int]) -> dict[int, bytes]:
        """Return the word codes of those of `passages` that are here; b"" for damaged ones."""
        stored: dict[int, bytes] = {}
        for passage, file in zip(passages, self._find_files_of(passages), strict=True):
            data = file.read(passage) if file else None
            if data is not None:
                stored[passage] = data
        if len(stored) < len(passages):
            stored |= {passage: b"" for passage in passages if passage in self.lost_passages}
        return stored

    def read_codes(
        self, passages: Sequence[int], *, with_turns: bool = False
    ) -> dict[int, WordCodes]:
        """Return the word codes of those of `passages` that are here, with turns if asked for."""
        stored = self.read_stored_codes(passages)
        codes = {passage: word_codes.read(data) for passage, data in stored.items()}
        if with_turns:
            for passage, found in self.records.read_records(list(codes)).items():
                if found is not None:
                    turns = find_turns(found.layout, found.start, codes[passage])
                    codes[passage] = replace(codes[passage], turns=turns)
        return codes

    # Filters

    def match_conditions(self, conditions: Sequence[Condition]) -> tantivy.Query | None:
        """Return the query of the passages whose documents fulfil all conditions; None without."""
        index = self.records.index
        queries = [facts.build_query(index, condition) for condition in conditions]
        return facts.all_of(queries) if queries else None

    def match_request(self, request: Request) -> tantivy.Query | None:
        """Return the query of what conditions and speakers of a request leave; None without."""
        queries = [self.match_conditions(request.conditions)] if request.conditions else []
        if request.speakers:
            queries.append(self.records.match_any(record.SPEAKERS, request.speakers))
        found = [query for query in queries if query is not None]
        return facts.all_of(found) if found else None

    def find_allowed(self, request: Request) -> Numbers | None:
        """Return the passages that conditions and speakers leave; None if there are neither."""
        key = (request.conditions, tuple(request.speakers))
        if key == ((), ()):
            return None
        if key not in self._filters:
            if len(self._filters) >= MOST_FILTERS:
                self._filters.clear()
            self._filters[key] = self._find_allowed(request)
        return self._filters[key]

    def _find_allowed(self, request: Request) -> Numbers:
        if request.speakers:
            return self.records.list_numbers(record.PASSAGE, self.match_request(request))
        conditions = self.match_conditions(request.conditions)
        first = self.records.match_firsts()
        firsts = facts.all_of([first, *([conditions] if conditions is not None else [])])
        return self._find_passages(self.records.list_numbers(record.DOCUMENT, firsts))

    def _find_passages(self, documents: Numbers) -> Numbers:
        return self.documents.passages[np.isin(self.documents.documents, documents)]

    # Proposals

    def _list_searches(self) -> list[WordSearch]:
        """Return the words of all files."""
        spec = self.head.spec
        with self._lock:
            for file in self.files:
                if file not in self._searches:
                    self._searches[file] = WordSearch(file, spec.dimension, spec.codes)
        return [self._searches[file] for file in self.files]

    @cached_property
    def _alive(self) -> list[NDArray[np.bool_]]:
        return [np.isin(file.passages, self.documents.passages) for file in self.files]

    @cached_property
    def _word_counts(self) -> NDArray[np.int64]:
        return count_words(self._list_searches(), self._codebook)

    @property
    def _codebook(self) -> Codebook:
        """The codebook of the index, which a model that was loaded has."""
        return codebook.find_by_name(self.head.spec.codebook, self.head.spec.dimension)

    def find_near(
        self, vector: Floats, least: int, least_documents: int, allowed: Numbers | None
    ) -> Numbers:
        """Return the passages that seem nearest to `vector`, see `near_passages.propose`."""
        if not self.files:
            return _NONE
        usable = self._alive
        if allowed is not None:
            usable = [
                alive & np.isin(file.passages, allowed)
                for file, alive in zip(self.files, usable, strict=True)
            ]
        files = SearchedFiles(
            self._list_searches(), usable, self._word_counts, self._codebook, self.head.spec.codes
        )
        return propose(files, vector, least, least_documents, self.documents)

    # What is stored

    def score_words(
        self, request: Request, within: tantivy.Query | None, window: int
    ) -> dict[int, float]:
        """Return the BM25 scores of the best passages, from as many documents as the window."""
        limit = WINDOWS_RANKED * window
        while True:
            scores = self.records.score(request.phrase, limit, within)
            if limit >= len(self) or self.documents.count(list(scores)) >= window:
                return scores
            limit *= WINDOWS_RANKED

    def score_passages(self, phrase: str, passages: Sequence[int]) -> dict[int, float]:
        """Return the BM25 scores of those of `passages` that contain a word of a phrase."""
        if not passages:
            return {}
        within = self.records.match_any(record.PASSAGE, passages)
        return self.records.score(phrase, len(self) + 1, within)

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return len(np.unique(self.documents.documents))
