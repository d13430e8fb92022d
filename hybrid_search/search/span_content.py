"""Turns, and the words of chosen spans, from the content of a passage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from hybrid_search.backends.turn_layout import unpack_word_times
from hybrid_search.backends.types import DamagedRowError, PassageContent
from hybrid_search.search.hit import Span, TurnPlace
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


def parse_metadata(index: str, document_id: str, content: PassageContent) -> dict[str, Any]:
    """Return the metadata of a passage's document.

    Raises:
        DamagedRowError: If it is damaged.
    """
    try:
        metadata = json.loads(content.metadata)
    except (ValueError, TypeError, RecursionError):  # an edited row may hold any type
        metadata = None
    if not isinstance(metadata, dict):
        raise DamagedRowError(index, document_id, "the metadata")
    return metadata


def find_turn(
    content: PassageContent, layout: Sequence[Any], start: int, end: int
) -> Mapping[str, Any] | None:
    """Return the turn of a parsed layout that contains the span; None if there is none."""
    if not content.start <= start < end <= content.start + len(content.text):
        return None
    try:
        covering_turns = (turn for turn in layout if turn["start"] <= start and end <= turn["end"])
        return next((turn for turn in covering_turns if isinstance(turn["turn"], int)), None)
    except (TypeError, LookupError):  # valid JSON, but not a layout
        return None


def read_turns(layout: Sequence[Any]) -> list[TurnPlace]:
    """Return the turns of a passage with this parsed layout; empty if it is damaged."""
    try:
        return [_read_turn(turn) for turn in layout]
    except (ValueError, TypeError, LookupError):
        return []


def _read_turn(turn: Mapping[str, Any]) -> TurnPlace:
    number, start, end = int(turn["turn"]), int(turn["start"]), int(turn["end"])
    start_ms, end_ms, speaker = turn.get("start_ms"), turn.get("end_ms"), turn.get("speaker")
    return TurnPlace(number, start, end, speaker, start_ms, end_ms, turn.get("extra"))


SpanTimes = tuple[int | None, int | None, Literal["words", "interpolated", "turn"] | None]
"""The start and end of a span in milliseconds, and the origin of these times."""


def find_times(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    """Return the times of the words between `start` and `end` in the text of a turn.

    They are those of the first and last word if the turn has them, else interpolated by characters
    between the known times around them. A turn with a single time gives that time; one without
    times, or with a damaged layout, gives None.
    """
    try:
        return _find_times(turn, start, end)
    except (TypeError, ValueError, LookupError, OverflowError):  # an edited row may hold any type
        return None, None, None


def _find_times(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    start_ms, end_ms, packed = map(turn.get, ("start_ms", "end_ms", "word_times"))
    if packed is not None:
        return _find_among_words(turn, start, end)
    if start_ms is None or end_ms is None:
        return start_ms, end_ms, None if start_ms is end_ms else "turn"
    rate = max(0, end_ms - start_ms) / (turn["end"] - turn["start"])
    return round(start_ms + rate * start), round(start_ms + rate * end), "interpolated"


def _find_among_words(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    words = unpack_word_times(turn["word_times"])
    starts = {word[0]: word[2] for word in words}
    ends = {word[1]: word[3] for word in words}
    if start in starts and end in ends:
        return starts[start], ends[end], "words"
    bounds = ((0, turn.get("start_ms")), (turn["end"] - turn["start"], turn.get("end_ms")))
    known = {place: time for place, time in bounds if time is not None} | starts | ends
    places = sorted(known)
    times = np.interp((start, end), places, [known[place] for place in places])
    start_ms, end_ms = (round(time) for time in times.tolist())
    start_ms = starts.get(start, start_ms)  # where a word ends as the next begins
    return start_ms, max(start_ms, end_ms), "interpolated"
