"""Examples for the prior: a query, a text, and the words of it that a person would mark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from export.boundaries.gaps import write_as_recognised
from hybrid_search.text.passages import WINDOW_WORDS
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.words import words


@dataclass(frozen=True, slots=True)
class MarkedExample:
    """The mark of `text` for `query`: its words from `first` up to but not including `after`."""

    query: str
    text: str
    first: int
    after: int


def mark_place(query: str, text: str, start: int, end: int) -> MarkedExample | None:
    """Return the example whose mark has the words that overlap ``text[start:end]``.

    None if there are none or more than a span has, or if the text is longer than a passage.
    """
    bounds = words(text)
    inside = np.flatnonzero((bounds[:, 0] < end) & (bounds[:, 1] > start))
    if not 0 < len(inside) <= MAX_WORDS or len(bounds) > WINDOW_WORDS:
        return None
    return MarkedExample(query, text, int(inside[0]), int(inside[-1]) + 1)


def recognise(examples: Iterable[MarkedExample]) -> list[MarkedExample]:
    """Return the examples as recognised; those whose words would change are left out."""
    pairs = (
        (example, write_as_recognised(example.text, words(example.text))) for example in examples
    )
    return [replace(example, text=text) for example, text in pairs if text]
