"""Examples for the prior: a query, a text, and the words of it that a person would mark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from export.boundaries.gaps import write_as_recognised
from export.boundaries.places import find_words
from hybrid_search.text.passages import WINDOW_WORDS
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.words import words


@dataclass(frozen=True, slots=True)
class MarkedExample:
    """The mark of `text` for `query`: its words from `first` up to but not including `after`.

    `core` is the range of the fewest words that a person would mark, where that is known.
    """

    query: str
    text: str
    first: int
    after: int
    core: tuple[int, int] | None = None


def mark_place(
    query: str, text: str, start: int, end: int, core: tuple[int, int] | None = None
) -> MarkedExample | None:
    """Return the example whose mark has the words that overlap ``text[start:end]``.

    None if there are none or more than a span has, or if the text is longer than a passage.
    `core` is a place in the text, too.
    """
    bounds = words(text)
    place = find_words(bounds, start, end)
    if place is None or place[1] - place[0] > MAX_WORDS or len(bounds) > WINDOW_WORDS:
        return None
    return MarkedExample(query, text, *place, find_words(bounds, *core) if core else None)


def recognise(examples: Iterable[MarkedExample]) -> list[MarkedExample]:
    """Return the examples as recognised; those whose words would change are left out."""
    pairs = (
        (example, write_as_recognised(example.text, words(example.text))) for example in examples
    )
    return [replace(example, text=text) for example, text in pairs if text]
