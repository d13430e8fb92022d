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
    if view.text[match.start : match.end] != match.text:
        return Surroundings("", match.text, "")
    start, end = _find_turn(view, match)
    before, after = view.text[start : match.start], view.text[match.end : end]
    return _cut(before, match.text, after, TURN_CHARACTERS)


def read_neighbours(view: DocumentView, match: Match) -> tuple[str, str]:
    """Return the turns before and after a match's own, each after its speaker; "" if there is none.

    A long turn is cut to the part nearest to the match.
    """
    if view.text[match.start : match.end] != match.text:
        return "", ""
    before = [turn for turn in view.turns if turn.end <= match.start]
    after = [turn for turn in view.turns if turn.start >= match.end]
    texts = []
    for turn, is_before in ((before[-1:], True), (after[:1], False)):
        words = "".join(view.text[place.start : place.end] for place in turn)
        cut = (
            _cut(words, "", "", NEIGHBOUR_CHARACTERS)
            if is_before
            else _cut("", "", words, NEIGHBOUR_CHARACTERS)
        )
        speaker = "".join(f"{place.speaker}: " for place in turn if place.speaker)
        texts.append(f"{speaker}{cut}")
    return texts[0], texts[1]


def read_sentence(view: DocumentView, match: Match) -> Surroundings:
    """Return the sentence around a match, in its turn; both ends are cut if they are long."""
    if view.text[match.start : match.end] != match.text:
        return Surroundings("", match.text, "")
    start, end = _find_turn(view, match)
    before, after = view.text[start : match.start], view.text[match.end : end]
    before = _SENTENCE_END.split(before)[-1]
    first_end = _SENTENCE_END.search(after)
    after = after[: first_end.start()] if first_end else after
    return _cut(before, match.text, after, SENTENCE_CHARACTERS)


def _find_turn(view: DocumentView, match: Match) -> tuple[int, int]:
    for turn in view.turns:
        if turn.start <= match.start and match.end <= turn.end:
            return turn.start, turn.end
    return match.start, match.end


def _cut(before: str, text: str, after: str, characters: int) -> Surroundings:
    if len(before) > characters:
        before = ELLIPSIS + before[-characters:].partition(" ")[2]
    if len(after) > characters:
        after = after[:characters].rpartition(" ")[0] + ELLIPSIS.strip()
    return Surroundings(before, text, after)
