"""`Match`: one mention of a topic. This module is imported with the package, so it stays light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Match:
    """A mention of a topic: ``document.text[start:end] == text``, in code points.

    Attributes:
        topic: The topic's name.
        phrase: The phrase of the topic that the words are nearest to.
        id: The document's id.
        turn: The number of the turn that holds it, from 0.
        speaker: The speaker of the turn, if known.
        start: Where the words begin in the document's text.
        end: Where they end.
        text: The words.
        cosine: Their cosine with the phrase, -1..1.
        probability: How likely they express the topic, 0..1.
        start_ms: When the words begin, in milliseconds, if the turn has times.
        end_ms: When they end.
        metadata: All keys of the document but id, text and turns.
        model: The fingerprint of the model that the cosine comes from.
        times: The origin of the times, as in `Span`.
    """

    topic: str
    phrase: str
    id: str
    turn: int
    speaker: str | None
    start: int
    end: int
    text: str
    cosine: float
    probability: float
    start_ms: int | None
    end_ms: int | None
    metadata: Mapping[str, Any] = field(hash=False)
    model: str
    times: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the match as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}
