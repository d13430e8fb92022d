"""The JSON that an index keeps about the turns of a passage.

For each turn: number, start and end in the document, speaker, times, those of its words that are
inside the passage, and keys unknown to us.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from hybrid_search.text.types import Document, Entry, Part, WordCodes, WordTime

_DAMAGED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What is raised where a layout is not one that was written."""


def build_layout(entry: Entry) -> str:
    """Return the layout of a passage: one JSON object for each of its parts, in order."""
    return json.dumps(
        [_build_turn(entry.document, part) for part in entry.passage.parts],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def read_speakers(layout: str) -> list[str]:
    """Return the speaker of each turn that has one; none if the layout is damaged."""
    try:
        speakers = [turn.get("speaker") for turn in json.loads(layout)]
    except _DAMAGED:
        return []
    return [speaker for speaker in speakers if isinstance(speaker, str)]


def find_turns(layout: str, start: int, tokens: WordCodes) -> list[tuple[int, str | None]]:
    """Return the first word and the speaker of each turn of a passage, as `WordCodes.turns`.

    The passage begins at `start` of its document. A layout that is damaged has no turns.
    """
    try:
        turns = [(int(turn["start"]), turn.get("speaker")) for turn in json.loads(layout)]
    except _DAMAGED:
        return []
    firsts = np.searchsorted(tokens.words[:, 0], [turn_start - start for turn_start, _ in turns])
    return [(first, speaker) for first, (_, speaker) in zip(firsts.tolist(), turns, strict=True)]


def pack_word_times(words: Sequence[WordTime]) -> list[list[int]]:
    """Return the offsets and the milliseconds of words, each number less the one before it."""
    offsets = chain.from_iterable((start, end) for start, end, _, _ in words)
    times = chain.from_iterable((start_ms, end_ms) for _, _, start_ms, end_ms in words)
    return [
        [following - number for number, following in pairwise((0, *row))]
        for row in (offsets, times)
    ]


def unpack_word_times(packed: Sequence[Iterable[int]]) -> list[WordTime]:
    """Return what `pack_word_times` packed; TypeError or ValueError is raised for anything else."""
    offsets, times = (list(accumulate(row)) for row in packed)
    return list(zip(offsets[::2], offsets[1::2], times[::2], times[1::2], strict=True))


def _build_turn(document: Document, part: Part) -> dict[str, Any]:
    turn = document.turns[part.turn]
    start, end = part.start - turn.start, part.end - turn.start
    first = bisect_right(turn.word_times, start, key=lambda word: word[1])
    last = bisect_left(turn.word_times, end, key=lambda word: word[0])
    words = turn.word_times[first:last]
    fields = {
        "turn": part.turn,
        "start": turn.start,
        "end": turn.end,
        "speaker": turn.speaker,
        "start_ms": turn.start_ms,
        "end_ms": turn.end_ms,
        "word_times": pack_word_times(words) if words else None,
    }
    return {
        **{name: value for name, value in fields.items() if value is not None},
        **({"extra": dict(turn.extra)} if turn.extra else {}),
    }
