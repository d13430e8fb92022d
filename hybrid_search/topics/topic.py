"""`Topic`: a name with its phrases.

This module is imported with the package, so it stays light. The forms that a user writes are
validated in `topic_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Topic:
    """A name with the phrases that mean it, and conditions on a mention.

    Attributes:
        name: Names the topic in matches; no other topic of the file has it.
        phrases: Ways of saying it. A span is as near to the topic as to the nearest of them.
        not_phrases: Phrases that are not meant. A span that is nearer to one of them is no mention.
        speakers: Only spans of these speakers count; empty for all.
        where: Only documents with this metadata count, as in `hybrid_search.query`.
        threshold: The least probability of a mention, 0..1; None for the default.
        precision: The wanted share of mentions that are right, 0..1; None if a threshold is used.
        notes: For people.
    """

    name: str
    phrases: tuple[str, ...]
    not_phrases: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict, hash=False)
    threshold: float | None = None
    precision: float | None = None
    notes: str = ""
