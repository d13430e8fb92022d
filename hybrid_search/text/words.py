"""Find the words of a text, the units that spans are made of.

A word is a segment between two Unicode word boundaries (UAX #29) that holds a letter, a digit or an
emoji. Each CJK ideograph is a word of its own.
"""

from __future__ import annotations

import numpy as np
import regex

from hybrid_search.text.types import Ints

_SEGMENT = regex.compile(
    r"['’]++|(?:\A[\p{Cf}\p{M}]++['’]*+|\b|(?<=['’]))\K.+?\b",
    flags=regex.WORD | regex.DOTALL | regex.V1,
)
"""One segment between word boundaries.

The `regex` module finds no boundary after marks at the start of a text, such as a BOM, nor between
an opening apostrophe and a vowel. The pattern adds both.
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
    # French puts U+202F before "!". UAX #29 joins words at it, for the sake of Mongolian.
    plain = text.replace("\u202f", " ")
    edges = (
        edge
        for match in _SEGMENT.finditer(plain)
        if _is_word(match.group())
        for edge in match.span()
    )
    # From an iterator: a list of pairs would take 165 MB for 5 MB of text.
    return np.fromiter(edges, dtype=np.int32).reshape(-1, 2) + np.int32(offset)


def _is_word(segment: str) -> bool:
    """Tell words from blanks and punctuation; letters only and one blank are decided fast."""
    return segment.isalnum() or (segment != " " and _WORD_CHARACTER.search(segment) is not None)


_LETTERS = regex.compile(r"[\p{L}\p{N}\p{M}\p{Co}]+", flags=regex.V1)


def distinct_words(phrase: str) -> list[str]:
    """Return the distinct runs of letters, marks and digits of a phrase, in lower case.

    A calibration counts them, and indexes of earlier versions are searched for them. They are
    lowered, not case folded: folding turns "ß" into "ss" while FTS5 keeps it, and a phrase copied
    from a text must match that text.
    """
    return list(dict.fromkeys(match.group().lower() for match in _LETTERS.finditer(phrase)))
