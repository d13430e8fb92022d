"""Ways of marking in a text what a phrase asks for: the product's, and baselines by words alone.

A way takes the marked texts and returns a place in each, or None where it marks nothing. It does
not look at the gold spans. The baselines know no synonym: a model has to mark better than they.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import regex

from benchmarks.lucene import compute_idf
from benchmarks.quality.marks import MarkedText
from benchmarks.quality.systems import Range
from hybrid_search.encoder import Encoder
from hybrid_search.search.span_search import best_spans
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.stems import count_text_stems, find_matches
from hybrid_search.text.types import Ints
from hybrid_search.text.words import words

Marks = list[Range | None]
Way = Callable[[Sequence[MarkedText]], Marks]

BEST_SPAN, BY_COSINE = "best span", "best span by cosine"
WHOLE, MATCHES, CLAUSE = "whole text", "matched words", "clause by words"
BASELINES = (WHOLE, MATCHES, CLAUSE)

_PAUSE = regex.compile(r"[.,;:!?…—–()\"“”„«»¿¡]+(?:\s+|\Z)|\s+[—–-]\s+")
"""Punctuation that ends a clause, by its place beside a blank: "1.5" and "well-known" have none."""


def list_ways(encoder: Encoder, prior: SpanPrior | None) -> Mapping[str, Way]:
    """Return every way of marking; another way of choosing spans by `encoder` is a line here."""
    return {
        BEST_SPAN: lambda marked_texts: mark_best_spans(encoder, marked_texts, prior),
        BY_COSINE: lambda marked_texts: mark_best_spans(encoder, marked_texts),
        WHOLE: mark_whole_texts,
        MATCHES: mark_matches,
        CLAUSE: mark_clauses,
    }


def mark_best_spans(
    encoder: Encoder, marked_texts: Sequence[MarkedText], prior: SpanPrior | None = None
) -> Marks:
    """Return the product's best span of each text, by its own search."""
    best = (best_spans(encoder, item.phrase, item.text, prior=prior) for item in marked_texts)
    return [(spans[0].start, spans[0].end) if spans else None for spans in best]


def mark_whole_texts(marked_texts: Sequence[MarkedText]) -> Marks:
    """Return all of each text."""
    return [(0, len(item.text)) for item in marked_texts]


def mark_matches(marked_texts: Sequence[MarkedText]) -> Marks:
    """Return the shortest stretch of at most `MAX_WORDS` words with most of the phrase in it.

    That is what the product's BM25 would highlight, as a span: the stretch whose matched stems have
    the largest sum of idf, then the shortest, then the first. None where no word matches.
    """
    index = StemIndex([item.text for item in marked_texts])
    return [_mark_matches(index, item) for item in marked_texts]


def _mark_matches(index: StemIndex, item: MarkedText) -> Range | None:
    starts = words(item.text)[:, 0]
    matches = index.find_matches(item)
    pairs = combinations_with_replacement(matches, 2)
    stretches = ((first.start, last.end) for first, last in pairs)
    return max(
        (stretch for stretch in stretches if _count_words(starts, stretch) <= MAX_WORDS),
        key=lambda stretch: (index.weigh(matches, stretch), stretch[0] - stretch[1]),
        default=None,
    )


def _count_words(starts: Ints, place: Range) -> int:
    return int(np.count_nonzero((place[0] <= starts) & (starts < place[1])))


def mark_clauses(marked_texts: Sequence[MarkedText]) -> Marks:
    """Return the clause of each text whose matched stems have the largest sum of idf.

    Of equal ones the longest in characters, then the first; so there is a mark where no word
    matches.
    """
    index = StemIndex([item.text for item in marked_texts])
    return [_mark_clause(index, item) for item in marked_texts]


def _mark_clause(index: StemIndex, item: MarkedText) -> Range | None:
    matches = index.find_matches(item)
    return max(
        list_clauses(item.text),
        key=lambda clause: (index.weigh(matches, clause), clause[1] - clause[0]),
        default=None,
    )


def list_clauses(text: str) -> list[Range]:
    """Return the stretches of words between punctuation, those of many words cut into equal parts.

    A part has at most `MAX_WORDS` words, as a span has.
    """
    bounds = words(text)
    pauses = [match.start() for match in _PAUSE.finditer(text)]
    numbers = np.searchsorted(pauses, bounds[:, 0], side="right")
    clauses = [bounds[numbers == number] for number in np.unique(numbers)]
    parts = [
        part for clause in clauses for part in np.array_split(clause, -(-len(clause) // MAX_WORDS))
    ]
    return [(int(part[0, 0]), int(part[-1, 1])) for part in parts]


@dataclass(frozen=True, slots=True)
class Match:
    """A word of a text that matches the phrase: its place and its stem."""

    start: int
    end: int
    stem: str


class StemIndex:
    """How rare every stem is among some texts, by the product's own stemmer."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(dict.fromkeys(texts))

    def find_matches(self, item: MarkedText) -> list[Match]:
        """Return the words of the text that match the phrase, in their order."""
        places = find_matches(item.text, item.phrase)
        return [Match(start, end, self._stem(item.text[start:end])) for start, end in places]

    def weigh(self, matches: Sequence[Match], place: Range) -> float:
        """Return the summed idf of the distinct stems of the matches inside `place`."""
        inside = (item for item in matches if place[0] <= item.start and item.end <= place[1])
        stems = sorted({item.stem for item in inside})
        return sum(compute_idf(len(self._texts), self._frequencies[stem]) for stem in stems)

    @cached_property
    def _frequencies(self) -> Counter[str]:
        """The number of texts that have each stem."""
        return Counter(stem for text in self._texts for stem in count_text_stems(text))

    def _stem(self, word: str) -> str:
        return next(iter(count_text_stems(word)))
