"""The phrases of a document that may answer a query, and their vectors in context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems import Range, SpanEncoder
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.types import Floats
from hybrid_search.text.words import words
from papers.pic.files import Search

NGRAMS = (2, 3)
"""Words of a candidate: the paper's, which has no longer ones "for computational tractability"."""

EVERY = tuple(range(1, MAX_WORDS + 1))
"""Words of a span in the product."""


def list_word_runs(document: str, lengths: Sequence[int]) -> list[Range]:
    """Return the runs of these numbers of words inside a sentence, in code points.

    Marks between the words belong to a run.
    """
    runs: list[Range] = []
    for start, end in sentences(document):
        edges = words(document[start:end], start).tolist()
        for length in lengths:
            ends = zip(edges, edges[length - 1 :], strict=False)
            runs += [(first[0], last[1]) for first, last in ends]
    return runs


def ngrams(search: Search) -> list[Range]:
    """Return the paper's candidates: runs of 2 and 3 words, and the places of the answer.

    The answer is not always one of the runs.
    """
    return list(
        dict.fromkeys(
            [*list_word_runs(search.document, NGRAMS), *search.answers, *search.other_places]
        )
    )


def paragraphs(document: str) -> list[Range]:
    """Return start and end of each paragraph, separated by two or more spaces or line ends.

    PSD's two paragraphs are separated so.
    """
    gaps = [match.span() for match in regex.finditer(r"\s{2,}", document)]
    edges = [0, *(edge for gap in gaps for edge in gap), len(document)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text to encode, with the places in it and the numbers of the candidates at these."""

    text: str
    places: list[Range]
    numbers: list[int]


def group_by_context(
    document: str, places: Sequence[Range], contexts: Sequence[Range]
) -> list[PlacedText]:
    """Return each place in that one of the `contexts` that contains it.

    A place that crosses several is read in all that it touches, joined.
    """
    edges, sought = np.array(contexts), np.array(places)
    first = np.searchsorted(edges[:, 1], sought[:, 0], side="right")
    last = np.searchsorted(edges[:, 0], sought[:, 1], side="left") - 1
    numbers_by_context: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, touched in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        numbers_by_context[touched].append(number)
    return [
        _place_text(document, places, numbers, contexts[begin][0], contexts[end][1])
        for (begin, end), numbers in numbers_by_context.items()
    ]


def _place_text(
    document: str, places: Sequence[Range], numbers: list[int], start: int, end: int
) -> PlacedText:
    return PlacedText(
        document[start:end],
        [(places[number][0] - start, places[number][1] - start) for number in numbers],
        numbers,
    )


def vectors(system: SpanEncoder, texts: Sequence[PlacedText]) -> Floats:
    """Return each candidate's unit vector in context, float32 ``[candidates, dimension]``.

    From one pass over each text.
    """
    return _order_vectors(
        texts,
        system.encode_spans(
            [placed_text.text for placed_text in texts],
            [placed_text.places for placed_text in texts],
        ),
    )


def swap_query(system: SpanEncoder, texts: Sequence[PlacedText], query: str) -> Floats:
    """Return the unit vector of `query` in each candidate's place.

    float32 ``[candidates, dimension]``: one pass for every candidate.
    """
    swapped_texts = [
        (placed_text.text[:start] + query + placed_text.text[end:], start)
        for placed_text in texts
        for start, end in placed_text.places
    ]
    return _order_vectors(
        texts,
        system.encode_spans(
            [text for text, _ in swapped_texts],
            [[(start, start + len(query))] for _, start in swapped_texts],
        ),
    )


def _order_vectors(texts: Sequence[PlacedText], text_vectors: Iterable[Floats]) -> Floats:
    """Return one array of vectors found text by text, in the order of the candidates' numbers."""
    ordered: Floats = np.concatenate(list(text_vectors))[
        np.argsort([number for placed_text in texts for number in placed_text.numbers])
    ]
    return ordered
