"""Warnings of a query about damaged passages, with the command that repairs them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from hybrid_search.backends.types import Fault, FaultKind, StoredPassage

EFFECTS: Mapping[FaultKind, str] = {
    "codes": "left out, because of damaged word codes",
    "text": "left out, because of a damaged text, place or metadata",
    "offsets": "without some spans, because of damaged offsets",
    "outdated": "left out, because its text has changed since the last sync",
}
"""The effect of each kind of damage on an answer."""

_log = logging.getLogger(__name__)

NAMED_PASSAGES = 10
"""Maximum number of passages that one warning names; the others are counted."""


def describe_changed(index: str, damaged: Sequence[tuple[StoredPassage, Fault]]) -> list[str]:
    """Log and return warnings about passages that differ from what was written, if any."""
    passages: dict[FaultKind, list[StoredPassage]] = {"codes": [], "outdated": [], "text": []}
    for passage, fault in damaged:
        passages[fault.kind if fault.kind in passages else "text"].append(passage)
    return [
        warning for kind, own in passages.items() for warning in describe_passages(index, own, kind)
    ]


def choose_remedy(index: str, kind: FaultKind, document_ids: Iterable[str]) -> str:
    """Return the command that mends documents with a kind of damage."""
    if kind == "codes":
        return f"hybrid-search verify --index {index} --repair"
    if kind == "outdated":
        return f"hybrid-search attach --index {index} --sync"
    ids = " ".join(sorted({quote(document_id) for document_id in document_ids}))
    return f"ingest again after hybrid-search delete --index {index} -- {ids}"


def describe_passages(index: str, passages: Sequence[StoredPassage], kind: FaultKind) -> list[str]:
    """Log and return a warning about passages with a kind of damage, if there are any."""
    if not passages:
        return []
    names = [
        f"{item.document_id!r} passage {item.ordinal}" if item.document_id else "a lost passage"
        for item in passages[:NAMED_PASSAGES]
    ]
    remedy = choose_remedy(index, kind, [item.document_id for item in passages[:NAMED_PASSAGES]])
    more = len(passages) - len(names)
    others = f" and {more} more" if more else ""
    warning = f"{', '.join(names)}{others}: {EFFECTS[kind]}. To mend this: {remedy}"
    _log.warning("%s", warning)
    return [warning]
