"""Excerpts of a hit: the sentences around its spans, for display."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid_search.search.hit import Hit, Span

AROUND = 120
"""Characters shown on each side of a span's sentence, as far as its turn has them."""

LONGEST_SENTENCE = 400
"""Maximum characters of a sentence shown whole; longer ones are cut around the span."""

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+|\n+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of one turn, with the spans that it contains.

    Attributes:
        start: Where it starts in the document, in code points.
        text: The text of the piece.
        spans: The hit's spans in the piece, best first; empty if the hit has no spans.
        is_cut_before: Whether more of the turn precedes it in the hit's passage.
        is_cut_after: Whether more of the turn follows it.
    """

    start: int
    text: str
    spans: tuple[Span, ...] = ()
    is_cut_before: bool = False
    is_cut_after: bool = False

    @property
    def end(self) -> int:
        """Where it ends in the document."""
        return self.start + len(self.text)

    def split(self) -> Iterator[tuple[str, bool]]:
        """Yield the text in pieces, each with a flag for whether it is a span."""
        position = self.start
        for span in sorted(self.spans, key=lambda span: span.start):
            yield self.text[position - self.start : span.start - self.start], False
            yield self.text[span.start - self.start : span.end - self.start], True
            position = span.end
        yield self.text[position - self.start :], False


def list_excerpts(hit: Hit) -> list[Excerpt]:
    """Return the excerpts of a hit, starting with the one around its best span.

    Spans whose excerpts would overlap share one excerpt. For a span in another passage the excerpt
    is just its words. A hit without spans gets its whole passage.
    """
    excerpts: list[Excerpt] = []
    for span in hit.spans:
        excerpt = _cut_excerpt(hit, span)
        overlapping = next((other for other in excerpts if _overlap(other, excerpt)), None)
        if overlapping is None:
            excerpts.append(excerpt)
        else:
            excerpts[excerpts.index(overlapping)] = _join(hit, overlapping, excerpt)
    return excerpts or [Excerpt(hit.start, hit.text)]


def _cut_excerpt(hit: Hit, span: Span) -> Excerpt:
    if span.start < hit.start or span.end > hit.start + len(hit.text):
        return Excerpt(span.start, span.text, (span,))
    turn_start, turn_end = _find_turn(hit, span)
    text = hit.text[turn_start - hit.start : turn_end - hit.start]
    first, last = _find_sentence(text, span.start - turn_start, span.end - turn_start)
    first, last = _move_to_words(text, first - AROUND, last + AROUND)
    return Excerpt(
        turn_start + first, text[first:last], (span,), bool(text[:first].strip()), last < len(text)
    )


def _find_turn(hit: Hit, span: Span) -> tuple[int, int]:
    """Return the start and end of a span's turn in the hit's passage."""
    end_of_text = hit.start + len(hit.text)
    for turn in hit.turns:
        if turn.start <= span.start and span.end <= turn.end:
            return max(turn.start, hit.start), min(turn.end, end_of_text)
    return hit.start, end_of_text


def _find_sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the sentences that contain a span."""
    first, last = 0, len(text)
    for match in _SENTENCE_END.finditer(text):
        if match.end() <= start:
            first = match.end()
        elif match.start() >= end:
            last = match.end()
            break
    return (first, last) if last - first <= LONGEST_SENTENCE else (start, end)


def _move_to_words(text: str, first: int, last: int) -> tuple[int, int]:
    """Return two offsets of a text, moved inwards to the edges of words."""
    first, last = max(first, 0), min(last, len(text))
    if first:
        gap = text.find(" ", first, first + AROUND)
        first = gap + 1 if gap >= 0 else first
    if last < len(text):
        gap = text.rfind(" ", last - AROUND, last)
        last = gap if gap >= 0 else last
    return first, last


def _overlap(first: Excerpt, second: Excerpt) -> bool:
    return first.start < second.end and second.start < first.end


def _join(hit: Hit, first: Excerpt, second: Excerpt) -> Excerpt:
    """Return one excerpt that covers two excerpts of the same turn."""
    start, end = min(first.start, second.start), max(first.end, second.end)
    return Excerpt(
        start,
        hit.text[start - hit.start : end - hit.start],
        (*first.spans, *second.spans),
        min(first, second, key=lambda part: part.start).is_cut_before,
        max(first, second, key=lambda part: part.end).is_cut_after,
    )
