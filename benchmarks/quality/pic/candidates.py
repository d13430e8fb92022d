"""The phrases of a document that may be what a query asks for, and the vectors that they have in their contexts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from benchmarks.quality.pic.files import Search
from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems.base import Range, SpanEncoder
from hybrid_search.spans import MAX_WORDS
from hybrid_search.types import Floats
from hybrid_search.words import words

NGRAMS = (2, 3)
"""Words of a candidate: the paper's, which has no longer ones "for computational tractability"."""

EVERY = tuple(range(1, MAX_WORDS + 1))
"""Words of a span in the product."""


def inside_sentences(document: str, lengths: Sequence[int]) -> list[Range]:
    """The runs of so many words of `document` that lie inside a sentence, in code points; marks between the words belong to a run."""
    found: list[Range] = []
    for start, end in sentences(document):
        edges = words(document[start:end], start).tolist()
        found += [(edges[first][0], edges[first + length - 1][1]) for length in lengths for first in range(len(edges) - length + 1)]
    return found


def ngrams(search: Search) -> list[Range]:
    """The paper's candidates: runs of 2 and 3 words, and the places of the answer, which is not always one of them."""
    return list(dict.fromkeys([*inside_sentences(search.document, NGRAMS), *search.answers, *search.others]))


def paragraphs(document: str) -> list[Range]:
    """Start and end of each paragraph: two or more spaces or line ends part them, as PSD's two paragraphs are parted."""
    gaps = [match.span() for match in regex.finditer(r"\s{2,}", document)]
    edges = [0, *(edge for gap in gaps for edge in gap), len(document)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that an encoder is shown, and what it is asked for there: the places in it, of the candidates with these numbers."""

    text: str
    places: list[Range]
    numbers: list[int]


def shown(document: str, places: Sequence[Range], contexts: Sequence[Range]) -> list[Shown]:
    """Each place in the one of the `contexts` that it lies in; one that lies across several is shown in all that it touches."""
    edges, sought = np.array(contexts), np.array(places)
    first = np.searchsorted(edges[:, 1], sought[:, 0], side="right")
    last = np.searchsorted(edges[:, 0], sought[:, 1], side="left") - 1
    held: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, touched in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        held[touched].append(number)
    return [_shown(document, places, numbers, contexts[begin][0], contexts[end][1]) for (begin, end), numbers in held.items()]


def _shown(document: str, places: Sequence[Range], numbers: list[int], start: int, end: int) -> Shown:
    return Shown(document[start:end], [(places[each][0] - start, places[each][1] - start) for each in numbers], numbers)


def vectors(system: SpanEncoder, texts: Sequence[Shown]) -> Floats:
    """The unit vector of each candidate in its context, float32 ``[candidates, dimension]``, from one pass over each text."""
    return _ordered(texts, system.inside([each.text for each in texts], [each.places for each in texts]))


def swapped(system: SpanEncoder, texts: Sequence[Shown], query: str) -> Floats:
    """The unit vector of `query` in each candidate's place, float32 ``[candidates, dimension]``: one pass for every candidate."""
    asked = [(each.text[:start] + query + each.text[end:], start) for each in texts for start, end in each.places]
    return _ordered(texts, system.inside([text for text, _ in asked], [[(start, start + len(query))] for _, start in asked]))


def _ordered(texts: Sequence[Shown], found: Iterable[Floats]) -> Floats:
    """One array of what was `found` text by text, in the order of the candidates' numbers."""
    ordered: Floats = np.concatenate(list(found))[np.argsort([number for each in texts for number in each.numbers])]
    return ordered
