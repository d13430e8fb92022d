"""Split documents into passages of whole turns, so that no span crosses two passages.

Turns are packed into passages of up to `PASSAGE_WORDS`. Only a turn longer than `WINDOW_WORDS` is
cut, into pieces of equal size. A piece also holds the next `MAX_WORDS` - 1 words, in which its
spans may end. A span belongs to the piece that holds its first word: no span is lost, and none is
counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.types import Document, Ints, Part, Passage, Turn
from hybrid_search.text.words import words

PASSAGE_WORDS = 80
"""About 100 word pieces: few vectors per passage, yet enough words for BM25."""

WINDOW_WORDS = 160
"""Fits 256 word pieces in speech and prose; otherwise the encoder cuts the window once more."""

LEFT_WORDS = 10
"""Words before a piece that the encoder also reads, as context for the first words of the piece."""

PIECE_WORDS = WINDOW_WORDS - LEFT_WORDS - (MAX_WORDS - 1)


def split(document: Document) -> Iterator[Passage]:
    """Yield the passages of `document`, numbered from 0.

    Turns without a word are left out. A document without any word is one passage without parts.
    """
    ordinal = 0
    for parts in _pack_parts(document):
        yield Passage(ordinal, parts[0].start, parts[-1].end, parts)
        ordinal += 1
    if not ordinal:
        yield Passage(0, 0, len(document.text), ())


def _pack_parts(document: Document) -> Iterator[tuple[Part, ...]]:
    parts: list[Part] = []
    size = 0
    for number, turn in enumerate(document.turns):
        for part in _parts(number, turn):
            if parts and size + len(part.words) > PASSAGE_WORDS:
                yield tuple(parts)
                parts, size = [], 0
            parts.append(part)
            size += len(part.words)
    if parts:
        yield tuple(parts)


def _parts(number: int, turn: Turn) -> Iterator[Part]:
    word_bounds = words(turn.text, turn.start)
    if len(word_bounds) > WINDOW_WORDS:
        yield from (
            _piece(number, turn, word_bounds, first, last)
            for first, last in _piece_bounds(len(word_bounds))
        )
    elif len(word_bounds):
        yield Part(number, turn.start, turn.end, turn.start, word_bounds, len(word_bounds))


def _piece_bounds(count: int) -> Iterator[tuple[int, int]]:
    """Cut `count` words into the fewest pieces of at most `PIECE_WORDS`, of almost equal size."""
    pieces = -(-count // PIECE_WORDS)
    edges = [count * i // pieces for i in range(pieces + 1)]
    yield from pairwise(edges)


def _piece(number: int, turn: Turn, word_bounds: Ints, first: int, last: int) -> Part:
    """Return the part with words `first` to `last` of a turn, and those its spans may end in.

    At the turn's own start and end, the punctuation around the words is included.
    """
    end_word = min(last + MAX_WORDS - 1, len(word_bounds))
    window_first = max(0, first - LEFT_WORDS)
    start, window = (
        turn.start if word == 0 else int(word_bounds[word, 0]) for word in (first, window_first)
    )
    end = turn.end if end_word == len(word_bounds) else int(word_bounds[end_word - 1, 1])
    return Part(number, start, end, window, word_bounds[first:end_word], last - first)
