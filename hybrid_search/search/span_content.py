"""Look up the words of a chosen span, and the turn that they stand in, in a passage's content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hybrid_search.backends.types import PassageContent
from hybrid_search.search.result import Span
from hybrid_search.search.types import Place


def build_span(content: PassageContent, turn: Mapping[str, Any], place: Place) -> Span:
    """Return the span at a place, which is in `turn`."""
    turn_start, start, end = turn["start"], place.start, place.end
    text = content.text[start - content.start : end - content.start]
    times = {name: turn.get(name) for name in ("start_ms", "end_ms")}
    return Span(
        start=start,
        end=end,
        text=text,
        cosine=place.cosine,
        prior=place.prior,
        turn=turn["turn"],
        turn_start=start - turn_start,
        turn_end=end - turn_start,
        speaker=turn.get("speaker"),
        turn_metadata=turn.get("extra"),
        **times,
    )


def find_turn(content: PassageContent, start: int, end: int) -> Mapping[str, Any] | None:
    """Return the turn that holds the span; None if the passage has no such place."""
    if not content.start <= start < end <= content.start + len(content.text):
        return None
    try:
        turns = json.loads(content.layout)
        covering_turns = (turn for turn in turns if turn["start"] <= start and end <= turn["end"])
        return next((turn for turn in covering_turns if isinstance(turn["turn"], int)), None)
    except (ValueError, TypeError, LookupError, RecursionError):  # JSON, but no layout
        return None
