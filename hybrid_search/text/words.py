"""Words: the units that spans are made of.

A word is a segment between two Unicode word boundaries (UAX #29) that holds a letter, a digit or an
emoji; each CJK ideograph is one.
"""

from __future__ import annotations

import numpy as np
import regex

from hybrid_search.text.types import Ints

_SEGMENT = regex.compile(
    r"['’]++|(?:\A[\p{Cf}\p{M}]++['’]*+|\b|(?<=['’]))\K.+?\b",
    flags=regex.WORD | regex.DOTALL | regex.V1,
)
"""The module finds no boundary behind marks that a text begins with, such as a BOM, nor between an
opening apostrophe and a vowel: we do.
"""
_WORD_CHARACTER = regex.compile(
    r"[[\p{L}\p{N}\p{Extended_Pictographic}]--\p{P}]|\p{Regional_Indicator}{2}", flags=regex.V1
)
"""The double exclamation mark and some more are pictographs to Unicode, and punctuation to
everybody.
"""


def words(text: str, offset: int = 0) -> Ints:
    """Start and end of each word, int32 ``[words, 2]``, in code points; `offset` is added to all."""
    plain = text.replace(
        "\u202f", " "
    )  # French has this space before "!"; UAX #29 joins words by it, for Mongolian
    edges = (
        edge
        for match in _SEGMENT.finditer(plain)
        if _is_word(match.group())
        for edge in match.span()
    )
    return np.fromiter(edges, dtype=np.int32).reshape(-1, 2) + np.int32(
        offset
    )  # a list of pairs would take 165 MB for 5 MB of text


def _is_word(segment: str) -> bool:
    """Nearly all segments are letters alone, or a blank, and quickly told."""
    return segment.isalnum() or (segment != " " and _WORD_CHARACTER.search(segment) is not None)


_TERM = regex.compile(r"[\p{L}\p{N}\p{M}\p{Co}]+", flags=regex.V1)


def query_terms(phrase: str) -> list[str]:
    """The distinct terms that a phrase is matched by in BM25, before stemming: runs of letters,
    marks and digits, in lower case.

    Not case folded: FTS5 keeps "ß", which folding makes "ss", and a phrase from a text must find
    it.
    """
    return list(dict.fromkeys(match.group().lower() for match in _TERM.finditer(phrase)))
