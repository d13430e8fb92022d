"""Turns, and the words of chosen spans, from the content of a passage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_search.backends.types import PassageContent
from hybrid_search.search.hit import Span, TurnPlace
from hybrid_search.search.span_times import find_times
from hybrid_search.search.types import Place


def build_span(content: PassageContent, turn: Mapping[str, Any], place: Place) -> Span:
    """Return the span at a place in `turn`."""
    turn_start, start, end = turn["start"], place.start, place.end
    text = content.text[start - content.start : end - content.start]
    start_ms, end_ms, times = find_times(turn, start - turn_start, end - turn_start)
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
        start_ms=start_ms,
        end_ms=end_ms,
        times=times,
        turn_metadata=turn.get("extra"),
    )


def parse_layout(content: PassageContent) -> list[Any]:
    """Parse the turn layout of a passage, which may be damaged; [] if it is not a list."""
    try:
        layout = json.loads(content.layout)
    except (ValueError, TypeError, RecursionError):  # an edited row may hold any type
        return []
    return layout if isinstance(layout, list) else []


def find_turn(
    content: PassageContent, layout: Sequence[Any], start: int, end: int
) -> Mapping[str, Any] | None:
    """Return the turn that contains the span; None if the passage has no such place.

    `layout` is what `parse_layout` returned for the passage.
    """
    if not content.start <= start < end <= content.start + len(content.text):
        return None
    try:
        covering_turns = (turn for turn in layout if turn["start"] <= start and end <= turn["end"])
        return next((turn for turn in covering_turns if isinstance(turn["turn"], int)), None)
    except (TypeError, LookupError):  # valid JSON, but not a layout
        return None


def read_turns(layout: Sequence[Any]) -> list[TurnPlace]:
    """Return the turns of a passage; empty if its layout is damaged.

    `layout` is what `parse_layout` returned for the passage.
    """
    try:
        return [_read_turn(turn) for turn in layout]
    except (ValueError, TypeError, LookupError):
        return []


def _read_turn(turn: Mapping[str, Any]) -> TurnPlace:
    number, start, end = int(turn["turn"]), int(turn["start"]), int(turn["end"])
    start_ms, end_ms, speaker = turn.get("start_ms"), turn.get("end_ms"), turn.get("speaker")
    return TurnPlace(number, start, end, speaker, start_ms, end_ms, turn.get("extra"))
