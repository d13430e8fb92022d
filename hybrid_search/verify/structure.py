"""Whether the passages of each document are all there, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from hybrid_search.backends.base import Fault, IndexSpec, Listed
from hybrid_search.ingest.documents import rehashed


def documents(listed: Iterable[Listed]) -> Iterator[Sequence[Listed]]:
    """What was listed, document by document; what has lost its document, piece by piece."""
    for id_, rows in groupby(listed, key=lambda row: row.document_id):
        if id_:
            yield list(rows)
        else:
            yield from ([row] for row in rows)


def faults(rows: Sequence[Listed], spec: IndexSpec) -> Iterator[tuple[Listed, Fault]]:
    """What is wrong with the passages of one document; a missing one is told by a made-up row."""
    yield from ((row, fault) for row in rows for fault in row.faults)
    if rows[0].document_id:
        now = _version(rows)
        yield from _orphans(rows, now)
        yield from _missing(rows, now)
        if now.source_hash != rehashed(now.source_hash, spec):
            yield now, Fault("version", "it was made by another model, policy or way of cutting than the index is made for now")


def _version(rows: Sequence[Listed]) -> Listed:
    """A passage of the version that counts: that of the first passage, which every version has."""
    return min(rows, key=lambda row: row.ordinal)


def _orphans(rows: Sequence[Listed], now: Listed) -> Iterator[tuple[Listed, Fault]]:
    """Passages of another version, beyond the last one, or there twice."""
    met: Counter[int] = Counter()
    for row in rows:
        met[row.ordinal] += 1
        if (row.source_hash, row.passages) != (now.source_hash, now.passages):
            yield row, Fault("orphan", f"it is of another version ({row.source_hash:.12}, of {row.passages}) than passage {now.ordinal}")
        elif row.ordinal >= row.passages:
            yield row, Fault("orphan", f"its document has {row.passages} passages")
        elif met[row.ordinal] > 1:
            yield row, Fault("orphan", "it is there more than once")


def _missing(rows: Sequence[Listed], now: Listed) -> Iterator[tuple[Listed, Fault]]:
    there = {row.ordinal for row in rows}
    for ordinal in range(now.passages):
        if ordinal not in there:
            made_up = Listed(None, now.document_id, ordinal, now.passages, now.source_hash)
            yield made_up, Fault("missing", f"it is not there, and its document has {now.passages} passages")
