"""Lists the passages of an index: with their word codes, or with their faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybrid_search.backends.codes_fault import find_codes_fault
from hybrid_search.backends.embedded import short_codes
from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.record import CHANGED_CONTENT, Record
from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import LAYERS
from hybrid_search.backends.embedded.snapshot import Snapshot
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

    With `full` all word codes are read, and the short codes compared with them.
    """
    stored_short_codes = _StoredShortCodes(snapshot)
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
            fault = _find_fault(snapshot, record, stored.get(passage), stored_short_codes, full)
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
    stored_short_codes: _StoredShortCodes,
    full: bool,
) -> Fault | None:
    if not data:
        is_lost = record.passage in snapshot.lost_passages
        return LOST_CODES if is_lost else CHANGED_CODES
    tokens = word_codes.read(data)
    if full and (fault := find_codes_fault(tokens, snapshot.head.spec.dimension)):
        return fault
    why = stored_short_codes.find_fault(record, tokens, full=full)
    return Fault("vectors", why) if why else None


class _StoredShortCodes:
    """The short codes of all files, or what is wrong with those of a file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._policy = snapshot.head.spec.policy
        self._files = [(file, _open(file)) for file in snapshot.files]

    def find_fault(self, record: Record, tokens: WordCodes, *, full: bool) -> str | None:
        """Return why a passage's short codes are not as they should be, or None.

        It has some if it has spans. With `full` they are compared with its word codes, too.
        """
        if not len(tokens.norms):
            return None
        codes = next(
            codes for file, codes in self._files if file.first <= record.passage <= file.last
        )
        if isinstance(codes, str):
            return codes
        stored = codes.find(record.passage)
        if stored is None:
            return "its file of codes has no short codes of it"
        if not full:
            return None
        windows = len(window_bounds(tokens.counts, self._policy))
        if windows != record.spans:
            return f"it has {record.spans} covering windows, and its codes give {windows}"
        expected = short_codes.shorten(record.passage, tokens)
        layers = zip(LAYERS, stored.layers, expected.layers, strict=True)
        wrong = sum(short_codes.count_differences(*layer) for layer in layers)
        wrong += int(not np.array_equal(stored.centroids, expected.centroids))
        return f"{wrong} of its short vectors are not those of its codes" if wrong else None


def _open(file: CodesFile) -> ShortCodeSearch | str:
    try:
        return ShortCodeSearch(file.read_short_codes())
    except DamagedFileError as error:
        return str(error)
