"""Find missing, surplus and outdated passages of a document in the list of its passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from hybrid_search.backends.types import Fault, IndexSpec, ListedPassage
from hybrid_search.ingest.document_parser import rehash_source


def group_by_document(passages: Iterable[ListedPassage]) -> Iterator[Sequence[ListedPassage]]:
    """Yield the passages of each document together, and passages without a document one by one."""
    for id_, rows in groupby(passages, key=lambda row: row.document_id):
        if id_:
            yield list(rows)
        else:
            yield from ([row] for row in rows)


def find_faults(
    rows: Sequence[ListedPassage], spec: IndexSpec
) -> Iterator[tuple[ListedPassage, Fault]]:
    """Yield each fault of one document with its passage; a missing passage gets a made-up row."""
    yield from ((row, fault) for row in rows for fault in row.faults)
    if rows[0].document_id:
        current = _current_version(rows)
        yield from _find_orphans(rows, current)
        yield from _find_missing(rows, current)
        if current.source_hash != rehash_source(current.source_hash, spec):
            yield (
                current,
                Fault(
                    "version",
                    "it was written by another model, policy or way of cutting passages "
                    "than the index has now",
                ),
            )


def _current_version(rows: Sequence[ListedPassage]) -> ListedPassage:
    """Return a passage of the current version: the first passage, which every version has."""
    return min(rows, key=lambda row: row.ordinal)


def _find_orphans(
    rows: Sequence[ListedPassage], current: ListedPassage
) -> Iterator[tuple[ListedPassage, Fault]]:
    """Yield passages of another version, beyond the last one, or stored twice."""
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row.ordinal] += 1
        if (row.source_hash, row.passages) != (current.source_hash, current.passages):
            yield (
                row,
                Fault(
                    "orphan",
                    f"it is of version {row.source_hash:.12} with {row.passages} passages, "
                    f"and passage {current.ordinal} is of version {current.source_hash:.12} "
                    f"with {current.passages}",
                ),
            )
        elif row.ordinal >= row.passages:
            yield (
                row,
                Fault(
                    "orphan",
                    f"its number is {row.ordinal}, and its document has {row.passages} passages",
                ),
            )
        elif counts[row.ordinal] > 1:
            yield row, Fault("orphan", "it is stored more than once")


def _find_missing(
    rows: Sequence[ListedPassage], current: ListedPassage
) -> Iterator[tuple[ListedPassage, Fault]]:
    ordinals = {row.ordinal for row in rows}
    for ordinal in range(current.passages):
        if ordinal not in ordinals:
            placeholder = ListedPassage(
                None, current.document_id, ordinal, current.passages, current.source_hash
            )
            yield (
                placeholder,
                Fault(
                    "missing", f"it is not there, and its document has {current.passages} passages"
                ),
            )
