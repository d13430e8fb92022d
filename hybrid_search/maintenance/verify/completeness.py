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
    if not rows[0].document_id:
        return
    first = min(rows, key=lambda row: row.ordinal)  # every version has a first passage
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row.ordinal] += 1
        if surplus := _describe_surplus(row, first, counts[row.ordinal]):
            yield row, Fault("orphan", surplus)
    for ordinal in (number for number in range(first.passages) if number not in counts):
        missing = f"it is not there, and its document has {first.passages} passages"
        row = ListedPassage(None, first.document_id, ordinal, first.passages, first.source_hash)
        yield row, Fault("missing", missing)
    if first.source_hash != rehash_source(first.source_hash, spec):
        outdated = (
            "it was written by another model, policy or way of cutting passages than the index "
            "has now"
        )
        yield first, Fault("version", outdated)


def _describe_surplus(row: ListedPassage, first: ListedPassage, count: int) -> str | None:
    """Return why a passage does not belong to its document, None if it does."""
    if (row.source_hash, row.passages) != (first.source_hash, first.passages):
        return (
            f"it is of version {row.source_hash:.12} with {row.passages} passages, and passage "
            f"{first.ordinal} is of version {first.source_hash:.12} with {first.passages}"
        )
    if row.ordinal >= row.passages:
        return f"its number is {row.ordinal}, and its document has {row.passages} passages"
    return "it is stored more than once" if count > 1 else None
