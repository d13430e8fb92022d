"""Lists the passages of an index: with their word codes, or with their faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.codes_fault import find_codes_fault
from hybrid_search.backends.embedded.codes_file import CodesFile, place_words
from hybrid_search.backends.embedded.record import CHANGED_CONTENT, Record
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.embedded.word_lists import Places
from hybrid_search.backends.types import DamagedRowError, Fault, ListedPassage, ScannedPassage
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes
from hybrid_search.text.window_policy import window_bounds

PAGE_PASSAGES = 256
"""Passages that are read at once: 6 MB of word codes."""

CHANGED_CODES = Fault("codes", "its word codes are not those that were written")
LOST_CODES = Fault("codes", "its word codes are missing")


def read_page(snapshot: Snapshot, after: int, index: str) -> list[ScannedPassage]:
    """Return `PAGE_PASSAGES` passages with their codes, those whose numbers follow `after`.

    Raises:
        DamagedRowError: If what is stored of a passage cannot be read.
    """
    passages = snapshot.documents.passages
    first = int(np.searchsorted(passages, after, side="right"))
    page = passages[first : first + PAGE_PASSAGES].tolist()
    codes, records = snapshot.read_codes(page), snapshot.records.read_records(page)
    scanned = []
    for passage in page:
        record = records.get(passage)
        if record is None:
            raise DamagedRowError(index, None)
        tokens = codes.get(passage, word_codes.UNREADABLE)
        scanned.append(
            ScannedPassage(passage, record.id, record.ordinal, record.start, tokens, passage)
        )
    return scanned


def iterate_passages(snapshot: Snapshot, *, full: bool) -> Iterator[ListedPassage]:
    """Yield all passages, those of a document one after the other.

    With `full` all word codes are read, and the lists of words compared with them.
    """
    stored_lists = _StoredLists(snapshot)
    passages = snapshot.documents.passages.tolist()
    for start in range(0, len(passages), PAGE_PASSAGES):
        page = passages[start : start + PAGE_PASSAGES]
        records = snapshot.records.read_records(page)
        stored = snapshot.read_stored_codes(page)
        for passage in page:
            record = records.get(passage)
            if record is None:
                yield ListedPassage(passage, "", -1, 0, "", (CHANGED_CONTENT,))
                continue
            fault = _find_fault(snapshot, record, stored.get(passage), stored_lists, full)
            yield ListedPassage(
                passage,
                record.id,
                record.ordinal,
                record.passages,
                record.source_hash,
                (fault,) if fault else (),
            )


def _find_fault(
    snapshot: Snapshot,
    record: Record,
    data: bytes | None,
    stored_lists: _StoredLists,
    full: bool,
) -> Fault | None:
    if not data:
        is_lost = record.passage in snapshot.lost_passages
        return LOST_CODES if is_lost else CHANGED_CODES
    tokens = word_codes.read(data)
    if full and (fault := find_codes_fault(tokens, snapshot.head.spec.dimension)):
        return fault
    why = stored_lists.find_fault(record, tokens, data, full=full)
    return Fault("vectors", why) if why else None


class _StoredLists:
    """The lists of words of all files, or what is wrong with those of a file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._policy = snapshot.head.spec.policy
        self._files = [(file, _sort_words(file)) for file in snapshot.files]

    def find_fault(
        self, record: Record, tokens: WordCodes, data: bytes, *, full: bool
    ) -> str | None:
        """Return why a passage's words are not listed as they should be, or None.

        With `full` the lists are compared with its word codes, which are `data` as stored.
        """
        file, words = next(
            pair for pair in self._files if pair[0].first <= record.passage <= pair[0].last
        )
        if isinstance(words, str):
            return words
        if not full:
            return None
        windows = len(window_bounds(tokens.counts, self._policy))
        if windows != record.spans:
            return f"it has {record.spans} covering windows, and its codes give {windows}"
        start = int(file.starts[np.searchsorted(file.passages, record.passage)])
        keys, places = place_words(data, start)
        first, after = np.searchsorted(words[0], [start, start + len(data)])
        stored_places, stored_keys = words[0][first:after], words[1][first:after]
        is_same = np.array_equal(stored_places, places) and np.array_equal(stored_keys, keys)
        return None if is_same else "its words are not in the lists of their codes"


def _sort_words(file: CodesFile) -> tuple[Places, NDArray[np.uint32]] | str:
    try:
        return file.read_lists().by_place()
    except DamagedFileError as error:
        return str(error)
