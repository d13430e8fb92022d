"""BM25 terms of a text, as the server analyzer ``english`` produces them.

A term is a word in lower case, without a possessive "'s". The 33 stop words of Lucene are left out.
Accents and stems are handled where terms are counted (`text.stems`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hybrid_search.text.types import Ints
from hybrid_search.text.words import words

_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Lucene's English stop words."""

_INVISIBLE = (0xAD, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
"""The soft hyphen, the direction marks and the byte order mark."""

_EMOJI_STYLES = (0xFE0E, 0xFE0F, 0x20E3)

OWN_MARKS = "<>[]{}."
"""Marks that words of spans may have at their ends (`words.include_marks`), but terms do not."""

_FOLDED = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        **dict(zip("øłđðħŧı", "olddhti", strict=True)),
        **dict.fromkeys("‘’‛＇", "'"),
        **{chr(code): "" for code in (*_INVISIBLE, *_EMOJI_STYLES)},
    }
)
"""Replacements for letters without a separable accent, apostrophes and invisible characters."""


def query_terms(phrase: str) -> list[str]:
    """Return the terms of a phrase, before stemming; a repeated term is repeated in the list."""
    return [term for term in _terms(phrase, words(phrase)) if term]


def join_terms(text: str, bounds: Ints) -> str:
    """Return the terms of a text joined by blanks; `bounds` are start and end of its words.

    No term contains a blank.
    """
    return " ".join(term for term in _terms(text, bounds) if term)


def find_words(text: str, terms: Collection[str]) -> list[tuple[int, int]]:
    """Return start and end of the words of a text whose term is one of `terms`."""
    bounds = words(text)
    pairs = zip(bounds.tolist(), _terms(text, bounds), strict=True)
    return [(start, end) for (start, end), term in pairs if term in terms]


def _terms(text: str, bounds: Ints) -> Iterator[str]:
    """Yield the term of each word, "" for a stop word."""
    for start, end in bounds.tolist():
        term = text[start:end].strip(OWN_MARKS).lower()
        if not term.isascii():
            term = term.translate(_FOLDED)
        term = term.removesuffix("'s")
        yield "" if term in STOP_WORDS else term
