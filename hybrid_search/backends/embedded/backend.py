"""Indexes in folders of this machine; many processes may read one while one writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import tantivy

from hybrid_search.backends.base import Backend, T, refuse_options, refuse_times
from hybrid_search.backends.embedded import (
    exact_scores,
    facts,
    head,
    near_passages,
    record,
    remains,
    scan,
)
from hybrid_search.backends.embedded.failures import translate_errors
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.next_version import NextVersion
from hybrid_search.backends.embedded.snapshot import Snapshot, Snapshots
from hybrid_search.backends.embedded.turns import Turns
from hybrid_search.backends.embedded.versions import create_version, remove_index
from hybrid_search.backends.embedded.writer import EmbeddedWriter
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.types import (
    FACETS,
    FoundPassages,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    Request,
    ScannedPassage,
    StoredPassage,
    check_spec,
)
from hybrid_search.backends.types import Head as IndexHead
from hybrid_search.errors import IndexMissingError, IndexStoreError
from hybrid_search.private_files import FOLDER_MODE, create_folder
from hybrid_search.system import available_cores
from hybrid_search.text.best_passages import BestPassages
from hybrid_search.text.filters import Scalar
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.word_codes import UNREADABLE

EXACT_PASSAGES = 2000
"""If a filter leaves at most so many passages, all their spans are scored: in about 0.05 s."""

PURGES = 3
"""How often an index is purged at most: merges that still run may bring deleted passages along."""

SUFFIX = ".index"
"""Of the folder of an index."""


class EmbeddedBackend(Backend):
    """Indexes in `folder`, each in NAME.index/. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        if folder.is_file():
            raise IndexStoreError(
                f"{folder} is a file, and indexes lie in a folder: use another folder"
            )
        self._folder = folder
        self._snapshots = Snapshots()
        self._turns = Turns(available_cores())

    def writer(self, index: str, spec: IndexSpec) -> EmbeddedWriter:
        """Open `index` for writing; one that does not exist stays if a document is written."""
        return self._open_writer(index, spec, keeps_empty=False)

    def _open_writer(self, index: str, spec: IndexSpec, *, keeps_empty: bool) -> EmbeddedWriter:
        path = self._path(index)
        with translate_errors(path):
            self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            lock = self._lock(index)
            is_new = False
            try:
                create_folder(path)
                current = head.read_head(path)
                is_new = current is None
                if current is None:
                    current = Head(spec, 1)
                    create_version(path, current)
                    current.write(path)
                check_spec(index, current.spec, spec)
                return EmbeddedWriter(path, current, lock, keeps_empty=keeps_empty or not is_new)
            except BaseException:
                if is_new:
                    remove_index(path, lock)
                else:
                    lock.release()
                raise

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists; options are an error, as only servers have."""
        refuse_options(options)
        with self._open_writer(index, spec, keeps_empty=True):
            pass

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> NextVersion:
        """Return a new version of `index`, to be filled and published in its place.

        Raises IndexMissingError if the index does not exist, IndexBusyError if it is being written.
        """
        refuse_options(options)
        path = self._find(index)
        with translate_errors(path):
            return NextVersion(path, spec, self._lock(index))

    def read_head(self, index: str) -> tuple[IndexSpec, dict[str, str]]:
        """Return the spec of `index` and its metadata fields (dotted name -> type)."""
        with self._read(index) as snapshot:
            return snapshot.head.spec, dict(snapshot.fields)

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count what it contains."""
        with self._read(index) as snapshot:
            size, written_at = _measure(self._path(index))
            return IndexInfo(
                snapshot.head.spec,
                dict(snapshot.fields),
                snapshot.count_documents(),
                len(snapshot),
                snapshot.records.count_spans(),
                size,
                written_at,
            )

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""
        return sorted(path.parent.stem for path in self._folder.glob(f"*{SUFFIX}/{head.NAME}"))

    def iterate_passages(self, index: str, *, full: bool = False) -> Iterator[ListedPassage]:
        """Yield every passage, from a snapshot of the index."""
        with self._read(index) as snapshot:
            yield from scan.iterate_passages(snapshot, full=full)

    def scan_codes(
        self, index: str, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield every passage with its word codes, in the order in which they were written.

        A passage that is written meanwhile comes behind all others.
        """
        refuse_times(written_since)
        passage = 0 if after is None else int(after)
        while True:
            with self._read(index) as snapshot:
                page = scan.read_page(snapshot, passage, index)
            yield from page
            if not page:
                return
            passage = page[-1].position

    def count_commits(self, index: str) -> tuple[str, int]:
        """Return the identity of an index, and a number that grows with each commit."""
        with self._read(index) as snapshot:
            return snapshot.head.identity, snapshot.records.stamp

    def list_passages(self, index: str, document_id: str) -> list[Key]:
        """Return the passages of a document in their order."""
        with self._read(index) as snapshot:
            query = snapshot.records.match_any(record.ID, [document_id])
            return list(snapshot.records.list_numbers(record.PASSAGE, query).tolist())

    def answer_by_head(self, index: str, answer: Callable[[IndexHead], T]) -> T:
        """Return the answer to a query; no more are computed at once than there are cores."""
        with self._turns.take():
            return answer(self.read_head(index))

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the best passages of both legs; tantivy computes BM25."""
        with self._read(index) as snapshot:
            scores = snapshot.score_words(request) if request.lexical else {}
            best, method = BestPassages(), "not asked"
            if request.semantic:
                best, method = _find_by_spans(snapshot, request, list(scores))
            keys = list(dict.fromkeys([*scores, *best.codes, *best.damaged]))
            return FoundPassages(_read_passages(snapshot, request, keys, scores, best), method)

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes."""
        with self._read(index) as snapshot:
            return _read_passages(snapshot, request, keys, {}, BestPassages())

    def find_quoting(self, index: str, quotation: str) -> dict[Key, str]:
        """Return the passages with all stems of the quotation, in the language of each passage."""
        with self._read(index) as snapshot:
            query = snapshot.records.match_quotation(quotation)
            passages = snapshot.records.list_numbers(record.PASSAGE, query).tolist()
            return {key: name for key, (name, _) in snapshot.find_places(passages).items()}

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        with self._read(index) as snapshot:
            damaged = PassageContent(0, "", "[]", "{}", record.CHANGED_CONTENT)
            records = snapshot.records.read_records(keys)
            return {key: own.content if own else damaged for key, own in records.items()}

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        with self._read(index) as snapshot:
            records = snapshot.records
            phrase = records.match_phrase(request.phrase)
            matching = facts.all_of(phrase, snapshot.match_request(request))
            documents = set(records.list_numbers(record.DOCUMENT, matching).tolist())
            of_documents = tantivy.Query.term_set_query(
                records.index.schema, record.DOCUMENT, sorted(documents)
            )
            firsts = facts.all_of(of_documents, records.match_firsts())
            counts = {name: records.count_values(name, firsts) for name in fields}
        return {
            name: dict(sorted(of_field.items(), key=lambda item: (-item[1], item[0]))[:FACETS])
            for name, of_field in counts.items()
        }

    def drop_index(self, index: str) -> None:
        """Remove `index` and its files; raise IndexBusyError if another process is writing it."""
        path = self._find(index)
        with translate_errors(path):
            lock = self._lock(index)
            try:
                self._snapshots.close(path)
                remove_index(path, lock)
            except BaseException:
                lock.release()
                raise

    def purge(self, index: str) -> None:
        """Remove what is left of deleted and replaced documents from all files of `index`."""
        for _ in range(PURGES):
            spec, _ = self.read_head(index)
            with self._open_writer(index, spec, keeps_empty=True) as writer:
                writer.purge()
            left = self.list_remains(index)
            if not left:
                return
        raise IndexStoreError(f"{left[0]}: run the same command again")

    def list_remains(self, index: str) -> list[str]:
        """Return what is left of deleted and replaced documents, in words."""
        with self._read(index) as snapshot:
            return remains.list_remains(self._path(index), snapshot.head)

    def iterate_files(self, index: str) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the bytes of each file of `index`; a large one comes in parts."""
        return remains.iterate_files(self._find(index))

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self._snapshots.close()

    @contextmanager
    def _read(self, index: str) -> Iterator[Snapshot]:
        path = self._find(index)
        with translate_errors(path):
            yield self._snapshots.open(path)

    def _find(self, index: str) -> Path:
        path = self._path(index)
        with translate_errors(path):
            exists = (path / head.NAME).exists()
        if not exists:
            existing = list_names(self.list_indexes(), index)
            raise IndexMissingError(
                f"there is no index {index!r} in {self._folder} (indexes there: {existing}). "
                f"Create it: hybrid-search ingest FILE --index {index}"
            )
        return path

    def _path(self, index: str) -> Path:
        return self._folder / f"{check_index_name(index)}{SUFFIX}"

    def _lock(self, index: str) -> WriterLock:
        return WriterLock(self._path(index).with_suffix(f"{SUFFIX}.lock"), index)


def _find_by_spans(
    snapshot: Snapshot, request: Request, by_words: Sequence[Key]
) -> tuple[BestPassages, str]:
    """Return the passages of the span leg, and how they were found, in words.

    The passages of the BM25 leg are scored with the nearest, since a query needs their cosines.
    """
    allowed = snapshot.find_allowed(request)
    if allowed is not None and len(allowed) <= EXACT_PASSAGES:
        best = exact_scores.score(snapshot, request, allowed, by_words)
        return best, "exact, on what the filter leaves"
    if allowed is None and len(snapshot) <= max(near_passages.MOST_CANDIDATES, request.window):
        return exact_scores.score(snapshot, request, snapshot.documents.passages, by_words), "exact"
    best = exact_scores.score_nearest(snapshot, request, allowed, by_words)
    best = replace(best, damaged=[*best.damaged, *snapshot.lost])
    return best, f"nearest words in {len(snapshot.files)} files"


def _read_passages(
    snapshot: Snapshot,
    request: Request,
    keys: Sequence[Key],
    scores: Mapping[Key, float],
    best: BestPassages,
) -> list[StoredPassage]:
    """Return the passages of `keys` that exist; what a leg has found of them is not read again."""
    unscored = [key for key in keys if key not in scores]
    scores = {**scores, **snapshot.score_passages(request.phrase, unscored)}
    codes = {**best.codes, **best.others}
    unread = [key for key in keys if key not in codes]
    codes |= snapshot.read_codes(unread, with_turns=bool(request.speakers))
    return [
        StoredPassage(
            key, *place, scores.get(key, 0.0), codes.get(key, UNREADABLE), best.cosines.get(key)
        )
        for key, place in snapshot.find_places(keys).items()
    ]


def _measure(folder: Path) -> tuple[int, datetime]:
    """Return the bytes of the files of an index, and when the last of them was written."""
    statuses = [path.stat() for path in folder.rglob("*") if path.is_file()]
    last = max(status.st_mtime for status in statuses)
    return sum(status.st_size for status in statuses), datetime.fromtimestamp(last, UTC)
