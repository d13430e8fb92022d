"""How well a marked span agrees with the one that a person would mark.

Counted in whole words of the text, by their places: a word that occurs twice is two words. A mark
and a gold span hold the words that they overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.recognised import spell_words
from benchmarks.quality.stsb_context import OVERLAP
from benchmarks.quality.systems import Range
from hybrid_search.text.types import Ints
from hybrid_search.text.words import words


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A phrase, a text, and the places of the spans in it that answer; any of them is right."""

    phrase: str
    text: str
    golds: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a mark has in common with the gold span that is nearest by each measure.

    `f1` is the harmonic mean of the shares of words in common, `iou` the words in common over the
    words of either, `found` 1 if intersection over union in characters is at least `OVERLAP`, else
    0; `length` is the mark's number of words. All are 0 for no mark.
    """

    f1: float = 0.0
    iou: float = 0.0
    found: float = 0.0
    length: int = 0


def compare(marked_text: MarkedText, mark: Range | None) -> Agreement:
    """Return how well `mark` agrees with the gold spans of its text; None is no mark."""
    if mark is None:
        return Agreement()
    bounds = words(marked_text.text)
    mark_words = _find_words(bounds, mark)
    nearest = [_compare(bounds, mark, gold) for gold in marked_text.golds]
    f1, iou, overlap = (max(values) for values in zip(*nearest, strict=True))
    return Agreement(f1, iou, float(overlap >= OVERLAP), mark_words[1] - mark_words[0])


def _compare(bounds: Ints, mark: Range, gold: Range) -> tuple[float, float, float]:
    """Return F1 and overlap in words, and overlap in characters."""
    mark_words, gold_words = _find_words(bounds, mark), _find_words(bounds, gold)
    return (
        _word_f1(mark_words, gold_words),
        _overlap(mark_words, gold_words),
        _overlap(mark, gold),
    )


def count_gold_words(marked_text: MarkedText) -> int:
    """Return the words of the first gold span."""
    first, after = _find_words(words(marked_text.text), marked_text.golds[0])
    return after - first


def write_as_recognised(marked_text: MarkedText) -> MarkedText:
    """Return the text as speech recognisers write it.

    The phrase stays as somebody would type it. Gold spans keep their words.
    """
    bounds = words(marked_text.text)
    spellings = spell_words(marked_text.text, bounds)
    ends = np.cumsum([len(spelling) + 1 for spelling in spellings]) - 1
    starts = [0, *(ends[:-1] + 1).tolist()]
    golds = [_find_words(bounds, gold) for gold in marked_text.golds]
    places = tuple((starts[first], int(ends[after - 1])) for first, after in golds)
    return MarkedText(marked_text.phrase, " ".join(spellings), places)


def _find_words(bounds: Ints, place: Range) -> Range:
    """Return the first word that overlaps a place, and the word after the last one."""
    inside = np.flatnonzero((bounds[:, 0] < place[1]) & (bounds[:, 1] > place[0]))
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)


def _word_f1(mark: Range, gold: Range) -> float:
    total = mark[1] - mark[0] + gold[1] - gold[0]
    return 2 * _intersect(mark, gold) / total if total else 0.0


def _overlap(mark: Range, gold: Range) -> float:
    """Return intersection over union of two ranges, 0 to 1; 0 if both are empty."""
    shared = _intersect(mark, gold)
    union = mark[1] - mark[0] + gold[1] - gold[0] - shared
    return shared / union if union else 0.0


def _intersect(first: Range, second: Range) -> int:
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))


def mean_gold_words(marked_texts: Sequence[MarkedText]) -> float:
    """Return the mean length of the first gold spans, in words."""
    return float(np.mean([count_gold_words(marked_text) for marked_text in marked_texts]))
