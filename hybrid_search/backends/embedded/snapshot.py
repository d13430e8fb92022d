"""An index as one commit left it: its records, which passages there are, and their codes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray

from hybrid_search.backends.embedded import codes_folder, facts, head
from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.near_passages import SearchedFiles, count_words, propose
from hybrid_search.backends.embedded.passage_documents import Numbers, PassageDocuments
from hybrid_search.backends.embedded.record import DOCUMENT, PASSAGE, SPEAKERS
from hybrid_search.backends.embedded.record_reader import META, RecordReader
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.backends.embedded.versions import (
    CODES,
    RECORDS,
    identify_file,
    read_noted_fields,
)
from hybrid_search.backends.embedded.word_search import WordSearch
from hybrid_search.backends.turn_layout import find_turns
from hybrid_search.backends.types import Request
from hybrid_search.errors import DamagedIndexError, IndexMissingError
from hybrid_search.text import codebook, word_codes
from hybrid_search.text.types import Codebook, Floats, WordCodes

_log = logging.getLogger(__name__)

MOST_FILTERS = 16
"""What so many filters leave is remembered."""

WINDOWS_RANKED = 4
"""How many times the window is ranked first; more if that holds too few documents."""

TRIES = 5
"""How often an index is opened that is replaced at the same moment."""

_NONE = np.zeros(0, np.int64)

_FileStates = Mapping[tuple[object, ...], WordSearch]
"""The words of files of codes, by path and what changes with their content."""

_IndexState = tuple[tuple[int, ...], ...]
"""What changes with each commit of an index."""


class Snapshot:
    """A commit of the index in `folder`, for several threads; later commits are not seen.

    `files` are those of its codes that can be read; a damaged one of tantivy is a DamagedFileError.
    """

    def __init__(self, folder: Path, current: Head, earlier: Snapshot | None = None) -> None:
        self.head = current
        self._folder = current.version_folder(folder)
        self._name = folder.stem
        self.records = RecordReader(self._folder / RECORDS)
        self.documents = self._list_passages(earlier)
        self._searches: _FileStates = self._open_files(earlier._searches if earlier else {})
        self.files = [search.file for search in self._searches.values()]
        self._filters: dict[tuple[object, ...], Numbers] = {}

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

    def _open_files(self, known: _FileStates) -> _FileStates:
        """Open the files of codes of these passages; those that were open stay open."""
        spec = self.head.spec
        searches: dict[tuple[object, ...], WordSearch] = {}
        for path in codes_folder.list_files(self._folder / CODES):
            state = (path, *identify_file(path))
            if state in known:
                searches[state] = known[state]
                continue
            try:
                file = CodesFile(path, self.head.identity)
                searches[state] = WordSearch(file, spec.dimension, spec.codes)
            except DamagedFileError as error:
                path.stat()  # raises if it is gone
                _log.warning("index %r: %s", self._name, error)
        return searches

    @cached_property
    def lost(self) -> frozenset[int]:
        """The passages of which no file has codes."""
        kept = [file.passages for file in self.files]
        lost = np.setdiff1d(self.documents.passages, np.concatenate([_NONE, *kept]))
        return frozenset(lost.tolist())

    @cached_property
    def fields(self) -> dict[str, str]:
        """The metadata fields that documents have or had: dotted name -> type."""
        fields = read_noted_fields(self._folder) | self.records.list_fields()
        return dict(sorted(fields.items()))

    def find_places(self, passages: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return the document id and the ordinal of those of `passages` that are here.

        The passages of a document have numbers in a row, and the first is the document's.
        """
        places: dict[int, tuple[str, int]] = {}
        files = self._find_files_of(passages)
        documents = self.documents.find(passages).tolist()
        for passage, document, file in zip(passages, documents, files, strict=True):
            if document >= 0:
                name = file.ids.get(document) if file else None
                if name is None:  # that file is lost
                    (record,) = self.records.read_records([passage]).values()
                    name = record.id if record else ""
                places[passage] = name, passage - document
        return places

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
            stored |= {passage: b"" for passage in passages if passage in self.lost}
        return stored

    def read_codes(
        self, passages: Sequence[int], *, with_turns: bool = False
    ) -> dict[int, WordCodes]:
        """Return the word codes of those of `passages` that are here, with turns if asked for."""
        stored = self.read_stored_codes(passages)
        codes = {passage: word_codes.read(data) for passage, data in stored.items()}
        if with_turns:
            for passage, record in self.records.read_records(list(codes)).items():
                if record is not None:
                    turns = find_turns(record.layout, record.start, codes[passage])
                    codes[passage] = replace(codes[passage], turns=turns)
        return codes

    # Filters

    def match_request(self, request: Request) -> tantivy.Query | None:
        """Return the query of what conditions and speakers of a request leave; None without."""
        index = self.records.index
        queries = [facts.build_query(index, condition) for condition in request.conditions]
        if request.speakers:
            queries.append(self.records.match_any(SPEAKERS, request.speakers))
        return facts.all_of(*queries) if queries else None

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
        query = self.match_request(request)
        if request.speakers:
            return self.records.list_numbers(PASSAGE, query)
        firsts = facts.all_of(self.records.match_firsts(), query)
        allowed_documents = self.records.list_numbers(DOCUMENT, firsts)
        return self.documents.passages[np.isin(self.documents.documents, allowed_documents)]

    # Proposals

    @cached_property
    def _alive(self) -> list[NDArray[np.bool_]]:
        return [np.isin(file.passages, self.documents.passages) for file in self.files]

    @cached_property
    def _word_counts(self) -> NDArray[np.int64]:
        return count_words(self._searches.values(), self._codebook)

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
        searches = list(self._searches.values())
        files = SearchedFiles(
            searches, usable, self._word_counts, self._codebook, self.head.spec.codes
        )
        return propose(files, vector, least, least_documents, self.documents)

    # What is stored

    def score_words(self, request: Request) -> dict[int, float]:
        """Return the BM25 scores of the passages in the window of that leg, best first."""
        within, limit = self.match_request(request), WINDOWS_RANKED * request.window
        while True:
            scores = self.records.score(request.phrase, limit, within)
            ranked = list(scores)
            if limit >= len(self) or self.documents.count(ranked) >= request.window:
                chosen = self.documents.choose(ranked, request.window)
                return {passage: scores[passage] for passage in chosen}
            limit *= WINDOWS_RANKED

    def score_passages(self, phrase: str, passages: Sequence[int]) -> dict[int, float]:
        """Return the BM25 scores of those of `passages` that contain a word of a phrase."""
        if not passages:
            return {}
        within = self.records.match_any(PASSAGE, passages)
        return self.records.score(phrase, len(self) + 1, within)

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return len(np.unique(self.documents.documents))


class Snapshots:
    """The latest snapshot of each index that was read, shared by all threads that query them."""

    def __init__(self) -> None:
        self._latest: dict[Path, tuple[_IndexState, Snapshot]] = {}
        self._locks: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def open(self, folder: Path) -> Snapshot:
        """Return the index in `folder` as its last commit left it."""
        with self._lock:
            lock = self._locks.setdefault(folder, threading.Lock())
        with lock:
            for _ in range(TRIES - 1):  # it may be replaced by a new version meanwhile
                with suppress(DamagedFileError, DamagedIndexError, OSError, ValueError):
                    return self._open(folder)
            return self._open(folder)

    def _open(self, folder: Path) -> Snapshot:
        latest = self._latest.get(folder)
        if latest and latest[0] == _find_state(folder, latest[1].head):
            return latest[1]
        current = head.read_head(folder)
        if current is None:
            raise IndexMissingError(
                f"index {folder.stem!r} was deleted while it was queried, or its creation was "
                "interrupted: ingest into it again"
            )
        state = _find_state(folder, current)
        earlier = latest[1] if latest and latest[1].head == current else None
        snapshot = Snapshot(folder, current, earlier)
        self._latest[folder] = state, snapshot
        return snapshot

    def close(self, folder: Path | None = None) -> None:
        """Let go of one index, or of all."""
        if folder is None:
            self._latest.clear()
        else:
            self._latest.pop(folder, None)


def _find_state(folder: Path, current: Head) -> _IndexState:
    """Return what changes with each commit of an index that has this head."""
    paths = (folder / head.NAME, current.version_folder(folder) / RECORDS / META)
    return tuple(identify_file(path) if path.exists() else () for path in paths)
