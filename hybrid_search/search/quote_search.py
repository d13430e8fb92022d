"""Whether somebody said a quotation: every place of an index where its words stand.

A store lists the passages that may contain the quotation, or the first words of a long one, and
misses none. Of the documents whose passages do contain these, all passages are read: a quotation
may be longer than a passage, but is within one turn.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import PassageContent
from hybrid_search.errors import DocumentMissingError, UsageError, show_value
from hybrid_search.parameters import check_phrase
from hybrid_search.search.damage import NAMED_PASSAGES, choose_remedy
from hybrid_search.search.hit import DocumentView
from hybrid_search.search.open_document import join_contents, read_contents, split_blocks
from hybrid_search.search.quote import QuoteCheck, QuotePlace
from hybrid_search.search.result import Result
from hybrid_search.search.span_content import find_times, parse_layout, read_turns
from hybrid_search.text.languages import ENGLISH
from hybrid_search.text.passages import EDGE_CHARACTERS
from hybrid_search.text.spans import MAX_WORDS
from hybrid_search.text.stems import fold_words
from hybrid_search.text.words import include_marks, words

_log = logging.getLogger(__name__)

ELLIPSIS = re.compile(r"\.{3,}|…")
"""What stands for words left out of a quotation; brackets around it are punctuation."""

BLOCK = 500
"""Number of passages whose texts are read together: 0.3 MB."""

NEAREST = 3
"""How many spans are shown of what comes nearest."""

Words = Sequence["_Word"]


@dataclass(frozen=True, slots=True)
class _Quotation:
    """A quotation, in the pieces between its ellipses; each has a word.

    `anchor` is the longest piece, or its beginning, which is in one passage wherever it stands.
    """

    pieces: Sequence[str]
    anchor: str

    @classmethod
    def parse(cls, text: str) -> _Quotation:
        """Return a quotation; raise UsageError if it is no text, too long, or has no word."""
        check_phrase("text", text)
        pieces = [piece for piece in ELLIPSIS.split(text) if len(words(piece))]
        if not pieces:
            raise UsageError(f"the text {show_value(text)} has no word: give what was said")
        return cls(pieces, _cut(max(pieces, key=_count_words)))


def _cut(piece: str) -> str:
    """Return the first words of a piece: as many as are in one passage wherever they stand.

    Passages of a long turn overlap by so many words or characters. A text may have more blanks and
    marks between the words than the quotation, so only half of the characters are used.
    """
    bounds = words(piece)[:MAX_WORDS]
    first, *others = (bounds[:, 1] - bounds[0, 0]).tolist()
    length = max(first, *(end for end in others if end <= EDGE_CHARACTERS // 2), 0)
    return piece[: int(bounds[0, 0]) + length]


def _count_words(piece: str) -> int:
    """Return the number of words of a piece."""
    return len(_fold(piece, ENGLISH))


@lru_cache(maxsize=100)
def _fold(piece: str, language: str) -> tuple[str, ...]:
    return tuple(fold_words(piece, words(piece), language))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a document, in the form in which words of its language are compared.

    `turn` is the turn in the layout of a passage that contains the word.
    """

    start: int
    end: int
    folded: str
    language: str
    turn: Mapping[str, Any]


def check_quote(
    backend: Backend, query: Callable[..., Result], text: str, index: str, places: int
) -> QuoteCheck:
    """Return where a quotation stands, at most so many places, or what `query` finds nearest."""
    quotation = _Quotation.parse(text)
    check = _find_places(backend, quotation, index, places)
    if check.found:
        return check
    result = query(quotation.anchor, index=index, size=NEAREST, spans=1)
    return replace(check, nearest=_list_nearest(result))


def _find_places(backend: Backend, quotation: _Quotation, index: str, most: int) -> QuoteCheck:
    places: list[QuotePlace] = []
    damaged: dict[str, None] = {}
    for document_id in _find_documents(backend, quotation.anchor, index, damaged):
        places += _find_in_document(backend, quotation, index, document_id, damaged)
        if len(places) > most:
            break
    warnings = _describe_damage(index, list(damaged))
    return QuoteCheck(places[:most], len(places) <= most and not damaged, warnings=warnings)


def _list_nearest(result: Result) -> list[QuotePlace]:
    """Return the best span of each hit of a query for what nobody said."""
    return [
        QuotePlace(
            hit.id,
            *(span.start, span.end, span.text, span.turn, span.speaker),
            *(span.start_ms, span.end_ms, span.times),
        )
        for hit in result
        for span in hit.spans[:1]
    ]


def _find_documents(
    backend: Backend, anchor: str, index: str, damaged: dict[str, None]
) -> Iterator[str]:
    """Yield the ids of the documents in which an anchor stands; `damaged` gets unreadable ones."""
    names = backend.find_quoting(index, anchor)
    found: set[str] = set()
    for block in split_blocks(list(names), BLOCK):
        for key, content in backend.fetch_contents(index, block).items():
            if names[key] in found or not _may_contain(content, anchor):
                continue
            turns = _read_turns(content)
            if turns is None:
                damaged[names[key]] = None
            elif any(_find_next(turn, [anchor], 0) for turn in turns.values()):
                found.add(names[key])
                yield names[key]


def _may_contain(content: PassageContent, anchor: str) -> bool:
    """Return whether a passage may contain an anchor, as far as is seen at a glance."""
    if content.fault or not content.text.isascii():
        return True
    text = content.text.lower()
    return all(word in text for word in _fold(anchor, ENGLISH))


def _find_in_document(
    backend: Backend, quotation: _Quotation, index: str, document_id: str, damaged: dict[str, None]
) -> Iterator[QuotePlace]:
    """Yield the places of a quotation in a document, none of which overlaps another."""
    try:
        contents = read_contents(backend, index, document_id)
    except DocumentMissingError:  # deleted meanwhile
        return
    view, _ = join_contents(index, document_id, contents)
    turns: defaultdict[int, dict[int, _Word]] = defaultdict(dict)
    for content in contents.values():
        by_number = _read_turns(content)
        if by_number is None:
            damaged[document_id] = None
            continue
        for number, turn in by_number.items():  # pieces of a long turn overlap
            turns[number] |= {word.start: word for word in turn}
    for number, by_start in sorted(turns.items()):
        turn = [by_start[start] for start in sorted(by_start)]
        position = 0
        while place := _find_next(turn, quotation.pieces, position):
            first, position = place
            yield _build_place(view, number, turn[first], turn[position - 1])


def _build_place(view: DocumentView, number: int, first: _Word, last: _Word) -> QuotePlace:
    """Return the place from a word of a turn to another one."""
    begin, end = (
        find_times(word.turn, word.start - word.turn["start"], word.end - word.turn["start"])
        for word in (first, last)
    )
    return QuotePlace(
        id=view.id,
        start=first.start,
        end=last.end,
        text=view.text[first.start : last.end],
        turn=number,
        speaker=first.turn.get("speaker"),
        start_ms=begin.start_ms,
        end_ms=end.end_ms,
        times=begin.times if begin.times == end.times else "interpolated",
    )


def _read_turns(content: PassageContent) -> dict[int, list[_Word]] | None:
    """Return the words of each turn of a passage by its number; None if it is damaged."""
    if content.fault:
        return None
    bounds, layout = words(content.text), parse_layout(content)
    turns = read_turns(layout)
    if len(bounds) and not turns:
        return None
    language = content.language
    folded_words = fold_words(content.text, bounds, language)
    shown = (include_marks(content.text, bounds) + content.start).tolist()
    starts = [turn.start for turn in turns]
    by_turn: defaultdict[int, list[_Word]] = defaultdict(list)
    for (start, end), folded in zip(shown, folded_words, strict=True):
        place = bisect_right(starts, start) - 1
        by_turn[turns[place].turn].append(_Word(start, end, folded, language, layout[place]))
    return by_turn


def _find_next(turn: Words, pieces: Sequence[str], position: int) -> tuple[int, int] | None:
    """Return the next place of some pieces in order: its first word, and the one behind its last.

    No place from `position` on ends earlier, and none that ends there is shorter.
    """
    end = position
    for piece in pieces:
        first = _find_piece(turn, piece, range(end, len(turn) - _count_words(piece) + 1))
        if first is None:
            return None
        end = first + _count_words(piece)
    start = end
    for piece in reversed(pieces):
        found = _find_piece(turn, piece, range(start - _count_words(piece), position - 1, -1))
        start = position if found is None else found
    return start, end


def _find_piece(turn: Words, piece: str, starts: range) -> int | None:
    """Return the first of some words of a turn at which a piece stands."""
    size = _count_words(piece)
    return next((start for start in starts if _stands(turn[start : start + size], piece)), None)


def _stands(these: Words, piece: str) -> bool:
    return all(
        word.folded == _fold(piece, word.language)[number] for number, word in enumerate(these)
    )


def _describe_damage(index: str, ids: Sequence[str]) -> list[str]:
    """Log and return a warning about documents that cannot be read, if there are any."""
    if not ids:
        return []
    warning = (
        f"{len(ids)} documents cannot be read whole, and may contain the quotation. To mend this: "
        f"{choose_remedy(index, 'text', ids[:NAMED_PASSAGES])}"
    )
    _log.warning("%s", warning)
    return [warning]
