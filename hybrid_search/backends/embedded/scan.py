"""Lists every passage of an embedded index with its faults.

Faults are rows without the rows that they belong to, and short codes that no segment contains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hybrid_search.backends.codes_fault import find_codes_fault
from hybrid_search.backends.embedded import segments, short_codes
from hybrid_search.backends.embedded.checksums import (
    CHANGED_CODES,
    find_content_fault,
    is_changed,
)
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import LAYERS
from hybrid_search.backends.types import Fault, IndexSpec, ListedPassage
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes
from hybrid_search.text.window_policy import window_bounds

ROWS = """
SELECT passage, documents.id, coalesce(ordinal, -1), documents.passages, source_hash,
    coalesce(spans, 0), tokens.passage IS NOT NULL, texts_docsize.id IS NOT NULL, {codes},
    checksums.content, checksums.codes, documents.metadata, start, layout, c0, c1
FROM documents
LEFT JOIN passages USING (document)
LEFT JOIN tokens USING (passage)
LEFT JOIN texts_docsize ON texts_docsize.id = passage
LEFT JOIN texts_content ON texts_content.id = passage
LEFT JOIN checksums USING (passage)
ORDER BY documents.document, ordinal"""

ORPHANS = {
    "a passage": (
        "SELECT passage FROM passages WHERE document NOT IN (SELECT document FROM documents)"
    ),
    "the word codes of a passage": (
        "SELECT passage FROM tokens WHERE passage NOT IN (SELECT passage FROM passages)"
    ),
    "the text of a passage": (
        "SELECT id FROM texts_docsize WHERE id NOT IN (SELECT passage FROM passages)"
    ),
}
"""Orphan checks: a kind of row, and the SQL that finds rows of it without a parent."""


def iterate_passages(
    connection: sqlite3.Connection, folder: Path, spec: IndexSpec, *, full: bool
) -> Iterator[ListedPassage]:
    """Yield all passages, then all orphans, in one read transaction; `folder` has the segments.

    With `full` all word codes are read, and the short codes compared with them.
    """
    connection.execute("BEGIN")
    stored_segments = _Segments(connection, folder, spec)
    rows = connection.execute(ROWS.format(codes="data" if full else "NULL"))
    for passage, id_, ordinal, count, source_hash, spans, tokens, text, data, *checked in rows:
        faults: list[Fault] = []
        row = (id_, ordinal, count, source_hash, spans)
        if [type(value) for value in row] != [str, int, int, str, int]:
            known_id = id_ if type(id_) is str else ""
            what = "its row is damaged: a number or text in it is neither"
            damage = Fault("orphan" if known_id else "id", what)
            yield ListedPassage(passage, known_id, -1, 0, "", (damage,))
            continue
        if passage is not None:
            faults += [] if tokens else [Fault("codes", "its word codes are missing")]
            faults += [] if text else [Fault("text", "its text is missing")]
        if text:
            faults += _find_changed_content(id_, ordinal, *checked)
        if full and is_changed(data, checked[1]):
            faults.append(CHANGED_CODES)
        elif tokens:
            codes = word_codes.read(data) if full else None
            faults += _find_faults(stored_segments, passage, spans, codes)
        yield ListedPassage(passage, id_, ordinal, count, source_hash, tuple(faults))
    for description, query in ORPHANS.items():
        for (number,) in connection.execute(query):
            orphan = Fault("orphan", f"{description} ({number}) that belongs to nothing")
            yield ListedPassage(number, "", -1, 0, "", (orphan,))


def _find_changed_content(
    id_: str, ordinal: int, checksum: int | None, _: int | None, metadata: object, *rest: object
) -> Iterator[Fault]:
    """Yield the fault of a passage whose content is not the one that was written."""
    start, layout, terms, text = rest
    fault = find_content_fault(id_, metadata, ordinal, start, layout, terms, text, checksum)
    if fault:
        yield fault


def _find_faults(
    stored_segments: _Segments, passage: int, spans: int, codes: WordCodes | None
) -> Iterator[Fault]:
    """Yield what is wrong with a passage's codes, if they are given, or with its short codes."""
    codes_fault = (
        find_codes_fault(codes, stored_segments.spec.dimension) if codes is not None else None
    )
    if codes_fault:
        yield codes_fault
    elif vectors_fault := stored_segments.find_fault(passage, spans, codes):
        yield Fault("vectors", vectors_fault)


class _Segments:
    """All segments of an index: their short codes, or what is wrong with the file."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, spec: IndexSpec) -> None:
        self.spec = spec
        stored_segments = segments.list_segments(connection)
        segments.find_faults(stored_segments, folder, again=True)
        self._codes = {segment: self._open(segment, folder) for segment in stored_segments}
        self._last_sealed = max((segment.last for segment in stored_segments), default=0)

    def _open(self, segment: Segment, folder: Path) -> ShortCodeSearch | str:
        try:
            return ShortCodeSearch(segments.open_segment(segment, folder))
        except DamagedSegmentError as error:
            return str(error)

    def find_fault(self, passage: int, spans: int, tokens: WordCodes | None) -> str | None:
        """Return why a passage's short codes are not in a segment as they should be, or None.

        It has some if it has covering windows, whose number is `spans`. With `tokens` its short
        codes are compared with them, too. A passage newer than all segments has no fault.
        """
        if passage > self._last_sealed or not spans:
            return None
        codes = next(
            (
                codes
                for segment, codes in self._codes.items()
                if segment.first <= passage <= segment.last
            ),
            "no segment has its short codes",
        )
        if isinstance(codes, str):
            return codes
        stored = codes.find(passage)
        if stored is None:
            return "its segment has no short codes of it"
        if tokens is None:
            return None
        windows = len(window_bounds(tokens.counts, self.spec.policy))
        if windows != spans:
            return f"it has {spans} covering windows, and its codes give {windows}"
        layers = zip(
            LAYERS, stored.layers, short_codes.shorten(passage, tokens).layers, strict=True
        )
        wrong = sum(short_codes.count_differences(*layer) for layer in layers)
        return f"{wrong} of its short vectors are not those of its codes" if wrong else None
