"""The text around a match: its turn or its sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybrid_search.search.hit import DocumentView
from hybrid_search.topics.match import Match

TURN_CHARACTERS = 400
SENTENCE_CHARACTERS = 200
"""Maximum characters shown on each side of a match."""

NEIGHBOUR_CHARACTERS = 200
"""Maximum characters shown of the turns before and after the match's own."""

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n|(?<=[。！？])")
ELLIPSIS = "… "


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The words of a match, and the text before and after them."""

    before: str
    text: str
    after: str

    def __str__(self) -> str:
        return f"{self.before}{self.text}{self.after}"


def read_turn(view: DocumentView, match: Match) -> Surroundings:
    """Return the turn around a match, cut to `TURN_CHARACTERS` on each side.

    If the document has changed since, only the words are returned.
    """
    before, after = _read_around(view, match)
    return Surroundings(
        _cut_before(before, TURN_CHARACTERS), match.text, _cut_after(after, TURN_CHARACTERS)
    )


def read_sentence(view: DocumentView, match: Match) -> Surroundings:
    """Return the sentence around a match, in its turn; both ends are cut if they are long."""
    before, after = _read_around(view, match)
    before = _SENTENCE_END.split(before)[-1]
    first_end = _SENTENCE_END.search(after)
    after = after[: first_end.start()] if first_end else after
    return Surroundings(
        _cut_before(before, SENTENCE_CHARACTERS), match.text, _cut_after(after, SENTENCE_CHARACTERS)
    )


def read_neighbours(view: DocumentView, match: Match) -> tuple[str, str]:
    """Return the turns before and after a match's own, each after its speaker; "" if there is none.

    A long turn is cut to the part nearest to the match.
    """
    if view.text[match.start : match.end] != match.text:
        return "", ""
    before, after = "", ""
    for turn in view.turns:
        speaker = f"{turn.speaker}: " if turn.speaker else ""
        words = view.text[turn.start : turn.end]
        if turn.end <= match.start:
            before = speaker + _cut_before(words, NEIGHBOUR_CHARACTERS)
        elif turn.start >= match.end:
            after = speaker + _cut_after(words, NEIGHBOUR_CHARACTERS)
            break
    return before, after


def _read_around(view: DocumentView, match: Match) -> tuple[str, str]:
    """Return what stands in a match's turn before and after it; nothing if its words have gone."""
    if view.text[match.start : match.end] == match.text:
        for turn in view.turns:
            if turn.start <= match.start and match.end <= turn.end:
                return view.text[turn.start : match.start], view.text[match.end : turn.end]
    return "", ""


def _cut_before(text: str, characters: int) -> str:
    is_long = len(text) > characters
    return ELLIPSIS + text[-characters:].partition(" ")[2] if is_long else text


def _cut_after(text: str, characters: int) -> str:
    is_long = len(text) > characters
    return text[:characters].rpartition(" ")[0] + ELLIPSIS.strip() if is_long else text
