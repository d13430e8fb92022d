"""Terms as BM25 counts them: without accents, and cut to their stems.

The stems are Porter's (1980), as those of the server analyzer ``english``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

import Stemmer

from hybrid_search.text.terms import find_words, join_terms, query_terms
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
    stems = count_stems(phrase)
    terms = set(join_terms(text, words(text)).split(" "))
    return find_words(text, {term for term in terms if term and find_stem(term) in stems})
