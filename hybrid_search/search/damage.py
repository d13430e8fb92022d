"""What a query says of stored passages that are damaged, so that their owner can mend them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from shlex import quote

from hybrid_search.backends.types import StoredPassage

_log = logging.getLogger(__name__)

NAMED_PASSAGES = 10
"""Passages that one warning names at most; the others are counted."""


def describe_left_out(index: str, passages: Sequence[StoredPassage]) -> list[str]:
    """Log and return a warning about passages with damaged token codes, if there are any."""
    remedy = f"hybrid-search verify --index {index} --repair"
    return _describe(passages, "left out, because of damaged token codes", remedy)


def describe_misplaced(index: str, passages: Sequence[StoredPassage]) -> list[str]:
    """Log and return a warning about passages whose spans have no place in their text, if any."""
    ids = " ".join(sorted({quote(item.document_id) for item in passages[:NAMED_PASSAGES]}))
    remedy = f"ingest again after hybrid-search delete --index {index} -- {ids}"
    return _describe(passages, "without some spans, because of damaged offsets", remedy)


def _describe(passages: Sequence[StoredPassage], what: str, remedy: str) -> list[str]:
    if not passages:
        return []
    names = [f"{item.document_id!r} passage {item.ordinal}" for item in passages[:NAMED_PASSAGES]]
    more = len(passages) - len(names)
    others = f" and {more} more" if more else ""
    warning = f"{', '.join(names)}{others}: {what}. To mend this: {remedy}"
    _log.warning("%s", warning)
    return [warning]
