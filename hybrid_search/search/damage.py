"""What a query says of stored passages that are damaged, so that their owner can mend them."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.backends.types import StoredPassage

NAMED_PASSAGES = 10
"""Passages that one warning names at most; the others are counted."""


def describe_left_out(index: str, passages: Sequence[StoredPassage]) -> list[str]:
    """Return a warning about the passages with damaged token codes, if there are any."""
    return _describe(index, passages, "left out, because their token codes are damaged")


def describe_misplaced(index: str, passages: Sequence[StoredPassage]) -> list[str]:
    """Return a warning about the passages whose spans have no place in their text, if any."""
    return _describe(index, passages, "without some spans, because their offsets are damaged")


def _describe(index: str, passages: Sequence[StoredPassage], what: str) -> list[str]:
    if not passages:
        return []
    names = [f"{item.document_id!r} passage {item.ordinal}" for item in passages[:NAMED_PASSAGES]]
    more = len(passages) - len(names)
    others = f" and {more} more" if more else ""
    return [
        f"{', '.join(names)}{others}: {what}. "
        f"To mend this: hybrid-search verify --index {index} --repair"
    ]
