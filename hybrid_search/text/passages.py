"""Split documents into passages of whole turns, so that no span crosses two passages.

Turns are packed into passages of up to `PASSAGE_WORDS`. Only a turn longer than `WINDOW_WORDS` is
cut, into pieces of equal size. A piece also includes the next `MAX_WORDS` - 1 words, in which its
spans may end. A span belongs to the piece with its first word, so no span is lost or counted twice.

Unusual text, such as a log on one line, is also cut by characters, so memory and time grow only
with the length of a text, whatever its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from hybrid_search.text.clause_marks import LINE_BREAK, LINE_BREAKS
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.types import Document, Ints, Part, Passage, Turn
from hybrid_search.text.words import include_marks, words

PASSAGE_WORDS = 80
"""About 100 word pieces: few vectors per passage, yet enough words for BM25."""

WINDOW_WORDS = 160
"""Fits 256 word pieces in speech and prose; otherwise the encoder cuts the window once more."""

LEFT_WORDS = 10
"""Words before a piece that the encoder reads as context for the first words of the piece."""

PIECE_WORDS = WINDOW_WORDS - LEFT_WORDS - (MAX_WORDS - 1)

MAX_CHARACTERS = 2_000
"""Maximum characters of a passage, and of the words in which the spans of a piece start.

`WINDOW_WORDS` words of ordinary text have about 900.
"""

EDGE_CHARACTERS = 500
"""Maximum characters of a piece before and after these words; 19 words have about 110."""

BATCH_CHARACTERS = 64 * 640
"""Maximum characters of passages encoded together, unless it is a single passage.

The vectors of as many tokens take 63 MB. 64 ordinary passages have 30,000 characters.
"""

_TIME = r"(?:[\[(]?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?[\])]?)"
_NAME = r"(?:[^\W\d_][\w.'’/()#&-]{0,30}(?: [\w.'’/()#&-]{1,30}){0,3})"
_LABEL = re.compile(
    rf"(?<![^{LINE_BREAKS}])[ \t>*_•\u200b-]*"  # a list, a quotation, bold letters
    rf"(?:(?:{_TIME}|\[[^\]{LINE_BREAKS}]{{1,30}}\])[ \t]*(?:-[ \t]+)?)?"
    rf"(?:{_NAME}(?:[ \t]{_TIME})?[*_]*[:：](?![/\\])|[\[<](?:v )?{_NAME}[\]>]"
    r"|[^\W\d_]\w{0,30}(?:\t| [-–] ))"
)
"""The name of a speaker at the start of a line, optionally after a time."""

Item = TypeVar("Item")


def split(document: Document) -> Iterator[Passage]:
    """Yield the passages of `document`, numbered from 0.

    Turns without a word are left out. A document without a word becomes one passage without parts.
    """
    ordinal = 0
    for parts in _pack_parts(document):
        yield Passage(ordinal, parts[0].start, parts[-1].end, parts)
        ordinal += 1
    if not ordinal:
        yield Passage(0, 0, len(document.text), ())


def split_batches(
    items: Iterable[Item], size: int, get_passage: Callable[[Item], Passage]
) -> Iterator[list[Item]]:
    """Yield batches of at most `size` items and at most `BATCH_CHARACTERS`.

    Args:
        items: Passages, or objects that have a passage each.
        size: The maximum number of items in a batch.
        get_passage: Function that returns the passage of an item.
    """
    batch: list[Item] = []
    characters = 0
    for item in items:
        passage = get_passage(item)
        length = passage.end - passage.start
        if batch and (len(batch) == size or characters + length > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(item)
        characters += length
    if batch:
        yield batch


def _pack_parts(document: Document) -> Iterator[tuple[Part, ...]]:
    parts: list[Part] = []
    size = 0
    for number, turn in enumerate(document.turns):
        for part in _parts(number, turn):
            if parts and _is_full(parts, size, part):
                yield tuple(parts)
                parts, size = [], 0
            parts.append(part)
            size += len(part.words)
    if parts:
        yield tuple(parts)


def _is_full(parts: Sequence[Part], size: int, part: Part) -> bool:
    """Return whether a passage of `size` words in some parts has no room for another part."""
    has_room = size + len(part.words) <= PASSAGE_WORDS
    return not has_room or part.end - parts[0].start > MAX_CHARACTERS


def _parts(number: int, turn: Turn) -> Iterator[Part]:
    word_bounds = include_marks(turn.text, words(turn.text)) + np.int32(turn.start)
    if len(word_bounds) > WINDOW_WORDS or (len(word_bounds) and len(turn.text) > MAX_CHARACTERS):
        breaks = _find_breaks(turn, word_bounds)
        for first, last in _piece_bounds(word_bounds):
            piece = _piece(number, turn, word_bounds, first, last)
            inside = tuple(
                word - first for word in breaks if first < word < first + len(piece.words)
            )
            yield replace(piece, breaks=inside)
    elif len(word_bounds):
        count, breaks = len(word_bounds), _find_breaks(turn, word_bounds)
        yield Part(number, turn.start, turn.end, turn.start, word_bounds, count, breaks)


def _find_breaks(turn: Turn, word_bounds: Ints) -> tuple[int, ...]:
    """Return the words, except the first, that start a line with the name of its speaker."""
    if not LINE_BREAK.search(turn.text):
        return ()
    starts = [turn.start + match.start() for match in _LABEL.finditer(turn.text)]
    numbers = np.unique(np.searchsorted(word_bounds[:, 0], starts)).tolist()
    return tuple(number for number in numbers if 0 < number < len(word_bounds))


def _piece_bounds(word_bounds: Ints) -> Iterator[tuple[int, int]]:
    """Cut words into the fewest pieces of at most `PIECE_WORDS`, of almost equal size.

    Pieces of more than `MAX_CHARACTERS` are cut again.

    Yields:
        The first word of each piece, and the word after its last.
    """
    count = len(word_bounds)
    pieces = -(-count // PIECE_WORDS)
    edges = [count * i // pieces for i in range(pieces + 1)]
    for first, last in pairwise(edges):
        start = first
        while start < last:
            furthest = word_bounds[start, 0] + MAX_CHARACTERS
            fitting = int(np.searchsorted(word_bounds[start:last, 1], furthest, side="right"))
            yield start, start + fitting
            start += fitting


def _piece(number: int, turn: Turn, word_bounds: Ints, first: int, last: int) -> Part:
    """Return the part with words `first` to `last` of a turn, and the words where spans may end.

    At the turn's own start and end, the punctuation around the words is included.
    """
    start, end = int(word_bounds[first, 0]), int(word_bounds[last - 1, 1])
    following = word_bounds[last : last + MAX_WORDS - 1, 1]
    end_word = last + int(np.searchsorted(following, end + EDGE_CHARACTERS, side="right"))
    left = word_bounds[max(0, first - LEFT_WORDS) : first, 0]
    outside = int(np.searchsorted(left, start - EDGE_CHARACTERS))
    window_first = first - (len(left) - outside)
    window = int(word_bounds[window_first, 0])
    if first == 0:
        start = window = max(turn.start, start - EDGE_CHARACTERS)
    elif window_first == 0:
        window = max(turn.start, window - EDGE_CHARACTERS)
    end = int(word_bounds[end_word - 1, 1])
    if end_word == len(word_bounds):
        end = min(turn.end, end + EDGE_CHARACTERS)
    return Part(number, start, end, window, word_bounds[first:end_word], last - first)
