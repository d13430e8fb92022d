"""Lists the passages of an index: with their word codes, or with their faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybrid_search.backends.embedded.record import CHANGED_CONTENT
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.types import (
    DamagedRowError,
    Fault,
    ListedPassage,
    ScannedPassage,
    find_codes_fault,
)
from hybrid_search.text import word_codes

PAGE_PASSAGES = 256
"""Passages that are read at once: 6 MB of word codes."""

CHANGED_CODES = Fault("codes", "its word codes are not those that were written")
LOST_CODES = Fault("codes", "its word codes are missing")


def read_page(snapshot: Snapshot, after: int, index: str) -> list[ScannedPassage]:
    """Return the next passages behind `after`; raise DamagedRowError if one cannot be read."""
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
    """Yield all passages; with `full` the damage that word codes show of themselves is a fault."""
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
            fault = _find_fault(snapshot, passage, stored.get(passage), full)
            yield ListedPassage(
                passage,
                record.id,
                record.ordinal,
                record.passages,
                record.source_hash,
                (fault,) if fault else (),
            )


def _find_fault(snapshot: Snapshot, passage: int, data: bytes | None, full: bool) -> Fault | None:
    if not data:
        return LOST_CODES if passage in snapshot.lost else CHANGED_CODES
    dimension = snapshot.head.spec.dimension
    return find_codes_fault(word_codes.read(data), dimension) if full else None
