"""Times of a span's words, from the layout of its turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from hybrid_search.backends.turn_layout import unpack_word_times


class SpanTimes(NamedTuple):
    """The start and end of a span in milliseconds, and the origin of these times."""

    start_ms: int | None = None
    end_ms: int | None = None
    times: Literal["words", "interpolated", "turn"] | None = None


def find_times(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    """Return the times of the words between `start` and `end` in the text of a turn.

    Args:
        turn: The turn as the layout of its passage has it.
        start: Where the span starts in the turn's text.
        end: Where it ends.

    Returns:
        The times of its first and last word if the turn has them. Otherwise they are interpolated
        by characters between the known times around them. A turn with a single time gives that
        time; a turn without times, or with a damaged layout, gives None.
    """
    try:
        return _find_times(turn, start, end)
    except (TypeError, ValueError, LookupError):  # an edited row may hold any type
        return SpanTimes()


def _find_times(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    start_ms, end_ms, packed = map(turn.get, ("start_ms", "end_ms", "word_times"))
    if packed is not None:
        return _find_among_words(turn, start, end)
    if start_ms is None or end_ms is None:
        return SpanTimes(start_ms, end_ms, None if start_ms is end_ms else "turn")
    rate = max(0, end_ms - start_ms) / (turn["end"] - turn["start"])
    return SpanTimes(round(start_ms + rate * start), round(start_ms + rate * end), "interpolated")


def _find_among_words(turn: Mapping[str, Any], start: int, end: int) -> SpanTimes:
    words = unpack_word_times(turn["word_times"])
    starts = {word[0]: word[2] for word in words}
    ends = {word[1]: word[3] for word in words}
    if start in starts and end in ends:
        return SpanTimes(starts[start], ends[end], "words")
    bounds = ((0, turn.get("start_ms")), (turn["end"] - turn["start"], turn.get("end_ms")))
    known = {place: time for place, time in bounds if time is not None} | starts | ends
    points = sorted(known.items())
    start_ms = starts.get(start, _interpolate(points, start))
    end_ms = ends.get(end, _interpolate(points, end))
    return SpanTimes(start_ms, max(start_ms, end_ms), "interpolated")


def _interpolate(points: Sequence[tuple[int, int]], place: int) -> int:
    """Return the time at an offset of the text, interpolated between the points around it."""
    number = min(max(bisect_right(points, place, key=lambda point: point[0]), 1), len(points) - 1)
    (before, time_before), (after, time_after) = points[number - 1], points[number]
    share = min(max((place - before) / (after - before), 0.0), 1.0)
    return round(time_before + share * (time_after - time_before))
