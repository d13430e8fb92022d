"""The JSON that an index keeps about the turns of a passage.

For each turn: number, start and end in the document, speaker, times, and keys unknown to us.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hybrid_search.text.types import Document, Entry, TokenCodes


def build_layout(entry: Entry) -> str:
    """Return the layout of a passage: one JSON object for each of its parts, in order."""
    return json.dumps(
        [_build_turn(entry.document, part.turn) for part in entry.passage.parts], ensure_ascii=False
    )


def read_speakers(layout: str) -> list[str]:
    """Return the speaker of each turn that has one; none if the layout is damaged."""
    try:
        turns = json.loads(layout)
    except (ValueError, RecursionError):
        return []
    if not isinstance(turns, list):
        return []
    speakers = [turn.get("speaker") for turn in turns if isinstance(turn, dict)]
    return [speaker for speaker in speakers if isinstance(speaker, str)]


def find_turns(layout: str, start: int, tokens: TokenCodes) -> list[tuple[int, str | None]]:
    """Return the first word and the speaker of each turn of a passage, as `TokenCodes.turns`.

    Args:
        layout: The layout of the passage; one that is damaged has no turns.
        start: Where the passage begins in its document.
        tokens: Its token codes.
    """
    try:
        turns = [(int(turn["start"]), turn.get("speaker")) for turn in json.loads(layout)]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []
    firsts = np.searchsorted(tokens.words[:, 0], [turn_start - start for turn_start, _ in turns])
    return [(first, speaker) for first, (_, speaker) in zip(firsts.tolist(), turns, strict=True)]


def _build_turn(document: Document, number: int) -> dict[str, Any]:
    turn = document.turns[number]
    fields = {
        "turn": number,
        "start": turn.start,
        "end": turn.end,
        "speaker": turn.speaker,
        "start_ms": turn.start_ms,
        "end_ms": turn.end_ms,
    }
    return {
        **{name: value for name, value in fields.items() if value is not None},
        **({"extra": dict(turn.extra)} if turn.extra else {}),
    }
