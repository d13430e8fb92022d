"""Words of a text, the units of which spans consist.

A word is a segment between two Unicode word boundaries (UAX #29) that holds a letter, a digit or an
emoji. Each CJK ideograph is a word of its own. A segment of more than `MAX_WORD` characters, such
as a log without blanks or base64 data, is split into several words.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import regex

from hybrid_search.text.types import Ints

MAX_WORD = 128
"""Maximum characters of a word: the length of the longest digests. Chemical names are shorter."""

_SEGMENT = regex.compile(
    r"['’]++|\p{Regional_Indicator}{2}[\p{M}\p{Cf}]*+"
    r"|(?:\A[\p{Cf}\p{M}]++['’]*+|\b|(?<=['’]))\K.+?\b",
    flags=regex.WORD | regex.DOTALL | regex.V1,
)
"""One segment between word boundaries.

The `regex` module finds no boundary after marks at the start of a text, such as a BOM, nor between
an opening apostrophe and a vowel. The pattern adds both. And it names flags, as the module counts
all letters of a run of flags for each of them: 100,000 took 95 seconds.
"""
_WORD_CHARACTER = regex.compile(
    r"[[\p{L}\p{N}\p{Extended_Pictographic}]--\p{P}]|\p{Regional_Indicator}{2}", flags=regex.V1
)
"""A character that makes a segment a word.

Punctuation is taken out: to Unicode the double exclamation mark and some others are pictographs.
"""


def words(text: str, offset: int = 0) -> Ints:
    """Return start and end of each word in code points, int32 ``[words, 2]``.

    `offset` is added to all of them.
    """
    # French puts U+202F before "!". UAX #29 joins words at it because of Mongolian.
    plain = text.replace("\u202f", " ")
    edges = (
        edge
        for match in _SEGMENT.finditer(plain)
        if _is_word(match.group())
        for edge in _cut(*match.span())
    )
    # From an iterator: a list of pairs would take 165 MB for 5 MB of text.
    return np.fromiter(edges, dtype=np.int32).reshape(-1, 2) + np.int32(offset)


MASK = "|".join(
    rf"{opening}(?:[^{opening}{closing}\s]{{1,40}}|[A-Z][A-Z\d _-]{{0,40}}){closing}"
    for opening, closing in (("<", ">"), (r"\[", r"\]"), (r"\{", r"\}"))
)
"""The pattern of placeholders, such as <name>, [PHONE] or <PERSON NAME>."""

_OWN_MARKS = regex.compile(rf"{MASK}|(?<!\w)(?:\p{{L}}\.){{2,20}}", flags=regex.V1)


def make_word_set(text: str) -> frozenset[str]:
    """Return the set of words in a blank-separated string."""
    return frozenset(text.split())


def contains_words(text: str, phrase: str) -> bool:
    """Return whether a text contains the words of a phrase in sequence, ignoring case."""
    wanted, folded = _join_words(phrase), text.casefold()
    if any(word not in folded for word in wanted.split()):  # so most texts need not be cut
        return False
    return f" {wanted} " in f" {_join_words(text)} "


def _join_words(text: str) -> str:
    return " ".join(text[start:end] for start, end in words(text).tolist()).casefold()


def include_marks(text: str, bounds: Ints) -> Ints:
    """Return the words of a text, extended by marks that belong to them: ``<name>``, ``p.m.``.

    Args:
        text: A text.
        bounds: Start and end of each of its words, int32 ``[words, 2]``.
    """
    places = [match.span() for match in _OWN_MARKS.finditer(text)]
    if not places:
        return bounds
    starts, ends = np.array(places, dtype=np.int32).T
    extended = bounds.copy()
    firsts = np.searchsorted(bounds[:, 0], starts)
    lasts = np.searchsorted(bounds[:, 1], ends, side="right") - 1
    holds_word = firsts <= lasts
    firsts, lasts = firsts[holds_word], lasts[holds_word]
    extended[firsts, 0] = np.minimum(extended[firsts, 0], starts[holds_word])
    extended[lasts, 1] = np.maximum(extended[lasts, 1], ends[holds_word])
    return extended


def _cut(start: int, end: int) -> Iterable[int]:
    """Return start and end of each word of a segment; only a very long one has several."""
    if end - start <= MAX_WORD:
        return start, end
    starts = range(start, end, MAX_WORD)
    return (edge for first in starts for edge in (first, min(first + MAX_WORD, end)))


def _is_word(segment: str) -> bool:
    """Return whether a segment is a word; letters alone and a single blank are decided fast."""
    return segment.isalnum() or (segment != " " and _WORD_CHARACTER.search(segment) is not None)


_LETTERS = regex.compile(r"[\p{L}\p{N}\p{M}\p{Co}]+", flags=regex.V1)


def distinct_words(phrase: str) -> list[str]:
    """Return the distinct runs of letters, marks and digits of a phrase, in lower case.

    Calibrations use their number.
    """
    return list(dict.fromkeys(match.group().lower() for match in _LETTERS.finditer(phrase)))
