"""Turns of a document from the output of speech recognisers: segments, words and times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Turn = dict[str, Any]
Times = tuple[int | None, int | None]
"""When something starts and ends, in milliseconds, if known."""

PAUSE_MS = 200
"""Maximum gap between segments of a sentence; people pause longer at the end of one."""
SILENCE_MS = 800
"""A longer silence ends a turn if only words are given, as in Deepgram's utterances."""
NEAR = 30
"""A word is searched within this many characters after the previous one."""

_SENTENCE_END = re.compile(r"[.?!…。？！][\"'”’)\]]*$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written in a text."""

    text: str
    times: Times
    speaker: str | None = None


def to_ms(seconds: float | str | None) -> int | None:
    """Return seconds as whole milliseconds, never negative; None if not a number."""
    if seconds is None or not math.isfinite(float(seconds)):
        return None
    return max(0, round(float(seconds) * 1000))


def read_times(part: Any) -> Times:
    """Return in milliseconds when a part starts and ends, which it says in seconds."""
    return to_ms(part.get("start")), to_ms(part.get("end"))


def pick(fields: Any, **keys: str) -> dict[str, Any]:
    """Return values of an object under the names that `keys` give them, None if one is missing."""
    return {name: fields.get(key) for name, key in keys.items()}


def make_turn(
    text: str | None,
    speaker: str | None = None,
    times: Times = (None, None),
    words: Iterable[Word] = (),
    **facts: Any,
) -> Turn:
    """Return a turn of a document, without facts that are unknown."""
    text = (text or "").strip()
    own = {"speaker": speaker, "text": text, "start_ms": times[0], "end_ms": times[1]}
    return keep_known({**own, "word_times": list(_locate_words(text, words)), **facts})


def keep_known(fields: dict[str, Any]) -> dict[str, Any]:
    """Return `fields` without empty values: None, NaN and empty lists and texts."""

    def is_known(value: Any) -> bool:
        is_number = isinstance(value, float)
        return math.isfinite(value) if is_number else value not in (None, "", [], (), {})

    return {name: value for name, value in fields.items() if is_known(value)}


def make_document(fields: dict[str, Any], turns: Iterable[Turn]) -> dict[str, Any]:
    """Return a document without unknown fields and without turns that have no text."""
    return keep_known(fields) | {"turns": [turn for turn in turns if turn.get("text")]}


def _locate_words(text: str, words: Iterable[Word]) -> Iterator[list[int]]:
    """Yield start, end and times of the words found in the text, in order."""
    lowered = text.lower() if len(text.lower()) == len(text) else text
    position = 0
    for word in words:
        written = word.text.strip()
        start = lowered.find(written.lower(), position, position + NEAR + len(written))
        if not written or start < 0:
            continue
        position = start + len(written)
        start_ms, end_ms = word.times
        if start_ms is not None and end_ms is not None and start_ms <= end_ms:
            yield [start, position, start_ms, end_ms]


def join_cut_sentences(segments: Iterable[Turn]) -> list[Turn]:
    """Return turns from segments that may end inside a sentence, as subtitles do.

    The times of the segments that are joined are kept as word times.
    """
    turns: list[Turn] = []
    for segment in segments:
        if not segment.get("text"):
            continue
        if turns and _goes_on(turns[-1], segment):
            turns[-1] = _join(turns[-1], segment)
        else:
            turns.append(segment)
    return turns


def _goes_on(turn: Turn, segment: Turn) -> bool:
    """Tell if a speaker goes on within `PAUSE_MS`, without having ended a sentence."""
    end_ms, start_ms = turn.get("end_ms"), segment.get("start_ms")
    if end_ms is None or start_ms is None or abs(start_ms - end_ms) > PAUSE_MS:
        return False
    is_same_speaker = turn.get("speaker") == segment.get("speaker")
    return is_same_speaker and not _SENTENCE_END.search(turn["text"])


def _join(turn: Turn, segment: Turn) -> Turn:
    shift = len(turn["text"]) + 1
    words = [
        *_timed_words(turn),
        *([start + shift, end + shift, *times] for start, end, *times in _timed_words(segment)),
    ]
    shared = {name: value for name, value in turn.items() if segment.get(name) == value}
    times = {"start_ms": turn.get("start_ms"), "end_ms": segment.get("end_ms")}
    text = f"{turn['text']} {segment['text']}"
    return {**shared, "text": text, "word_times": words, **keep_known(times)}


def _timed_words(turn: Turn) -> list[list[int]]:
    """Return the word times of a turn, or its own times as those of one long word."""
    is_timed = "start_ms" in turn and "end_ms" in turn
    own = [[0, len(turn["text"]), turn["start_ms"], turn["end_ms"]]] if is_timed else []
    words: list[list[int]] = turn.get("word_times", own)
    return words


def iterate_turns(words: Sequence[Word], **facts: Any) -> Iterator[Turn]:
    """Yield the turns of `words`; one ends at a change of speaker or a silence."""
    first = 0
    for number, (before, word) in enumerate(pairwise(words), 1):
        end_ms, start_ms = before.times[1], word.times[0]
        silence = start_ms - end_ms if start_ms is not None and end_ms is not None else 0
        if silence >= SILENCE_MS or before.speaker != word.speaker:
            yield join_words(words[first:number], **facts)
            first = number
    if words:
        yield join_words(words[first:], **facts)


def join_words(words: Sequence[Word], **facts: Any) -> Turn:
    """Return the turn that consists of `words`."""
    times = words[0].times[0], words[-1].times[1]
    text = " ".join(word.text.strip() for word in words)
    return make_turn(text, words[0].speaker, times, words, **facts)


def sort_by_start(turns: Iterable[Turn]) -> list[Turn]:
    """Return turns of several channels sorted by start time."""
    return sorted(turns, key=lambda turn: turn.get("start_ms", 0))
