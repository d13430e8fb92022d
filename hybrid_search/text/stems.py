"""Terms as BM25 counts them: without accents, and cut to their stems.

The stems are Porter's (1980), as those of the server analyzer ``english``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import Stemmer

from hybrid_search.text.types import Ints
from hybrid_search.text.words import words

LONGEST = 64
"""Characters of the longest term that has a stem; a longer one is a code."""

_ACCENTS = re.compile("[\u0300-\u036f]")
"""Marks that letters of Europe carry; those of other scripts are letters themselves."""

_stemmer = Stemmer.Stemmer("porter", 0)  # without a cache of its own


@lru_cache(maxsize=100_000)
def find_stem(term: str) -> str:
    """Return the stem of a term, without accents."""
    if not term.isascii():
        term = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", term)))
    return str(_stemmer.stemWord(term)) if 2 < len(term) <= LONGEST else term


def stem_text(text: str, bounds: Ints | None = None) -> str:
    """Return the stems of a text joined by blanks; `bounds` are start and end of its words."""
    terms = join_terms(text, words(text) if bounds is None else bounds)
    return " ".join(map(find_stem, terms.split(" "))) if terms else ""


def count_text_stems(text: str) -> Counter[str]:
    """Count the stems of a text."""
    return Counter(stem_text(text).split())


def count_stems(phrase: str) -> Counter[str]:
    """Count the stems of a phrase."""
    return Counter(map(find_stem, query_terms(phrase)))


def find_matches(text: str, phrase: str) -> list[tuple[int, int]]:
    """Return start and end of the words of `text` that are a term of `phrase`."""
    stems, bounds = count_stems(phrase), words(text)
    pairs = zip(bounds.tolist(), _terms(text, bounds), strict=True)
    return [(start, end) for (start, end), term in pairs if term and find_stem(term) in stems]


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


def _terms(text: str, bounds: Ints) -> Iterator[str]:
    """Yield the term of each word, "" for a stop word."""
    for start, end in bounds.tolist():
        term = text[start:end].strip(OWN_MARKS).lower()
        if not term.isascii():
            term = term.translate(_FOLDED)
        term = term.removesuffix("'s")
        yield "" if term in STOP_WORDS else term
