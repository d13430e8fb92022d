"""Terms as BM25 counts them: without stop words and accents, reduced to their stems.

English stems are Porter's (1980), as those of the server analyzer ``english``. Those of the other
`languages` are Snowball's, and begin with the language and a slash: a word of one language is never
taken for one of another.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from string import ascii_lowercase, digits

import Stemmer

from hybrid_search.text.languages import ENGLISH, LANGUAGES, is_stop_word, remove_elision
from hybrid_search.text.types import Ints
from hybrid_search.text.words import words

LONGEST = 64
"""Characters of the longest term that has a stem; a longer one is a code."""

_ACCENTS = re.compile("[\u0300-\u036f]")
"""Marks that letters of Europe carry; those of other scripts are letters themselves."""


@lru_cache(maxsize=100_000)
def find_stem(term: str, language: str = ENGLISH) -> str:
    """Return the stem of a term, without accents."""
    if language == ENGLISH:
        term = _remove_accents(term)
        return str(_stemmer("porter").stemWord(term)) if 2 < len(term) <= LONGEST else term
    if len(term) <= LONGEST:  # Snowball's rules need the accents
        term = str(_stemmer(LANGUAGES[language]).stemWord(term))
    return f"{language}/{_remove_accents(term.translate(_FOLDED))}"


@lru_cache
def _stemmer(algorithm: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(algorithm, 0)  # without a cache of its own


def _remove_accents(term: str) -> str:
    if term.isascii():
        return term
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", term)))


def stem_text(text: str, language: str = ENGLISH) -> str:
    """Return the stems of a text joined by blanks."""
    terms = join_terms(text, words(text), language)
    return " ".join(find_stem(term, language) for term in terms.split(" ")) if terms else ""


def count_text_stems(text: str, language: str = ENGLISH) -> Counter[str]:
    """Count the stems of a text."""
    return Counter(stem_text(text, language).split())


def count_stems(phrase: str, languages: Iterable[str] = (ENGLISH,)) -> Counter[str]:
    """Count the stems of a phrase in each of some languages."""
    return Counter(
        find_stem(term, language)
        for language in languages
        for term in query_terms(phrase, language)
    )


def find_matches(text: str, phrase: str, language: str = ENGLISH) -> list[tuple[int, int]]:
    """Return start and end of the words of `text` that are a term of `phrase`."""
    stems, bounds = count_stems(phrase, [language]), words(text)
    pairs = zip(bounds.tolist(), _terms(text, bounds, language), strict=True)
    return [
        (start, end) for (start, end), term in pairs if term and find_stem(term, language) in stems
    ]


_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Lucene's English stop words."""

UNSEEN = (
    *(0xAD, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF),
    *(0xFE0E, 0xFE0F, 0x20E3),
)
"""Characters that are no part of a term.

These are the soft hyphen, the direction marks, the byte order mark, and the styles of emoji.
"""

_FOLDED = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        **dict(zip("øłđðħŧı", "olddhti", strict=True)),
    }
)
"""Replacements for letters without a separable accent."""

_FULL_WIDTH = {chr(ord(letter) + 0xFEE0): letter for letter in digits + ascii_lowercase}
_LIGATURES = dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))

_TYPED = str.maketrans(
    {
        **dict.fromkeys("‘’‛＇", "'"),
        **{chr(code): "" for code in UNSEEN},
        **_FULL_WIDTH,
        **_LIGATURES,
    }
)
"""Replacements for apostrophes, invisible characters, and letters in another width or joined."""


def query_terms(phrase: str, language: str = ENGLISH) -> list[str]:
    """Return the terms of a phrase, before stemming; a repeated term is repeated in the list."""
    return [term for term in _terms(phrase, words(phrase), language) if term]


def join_terms(text: str, bounds: Ints, language: str = ENGLISH) -> str:
    """Return the terms of a text joined by blanks; `bounds` are start and end of its words.

    No term contains a blank.
    """
    return " ".join(term for term in _terms(text, bounds, language) if term)


def fold_words(text: str, bounds: Ints, language: str = ENGLISH) -> Iterator[str]:
    """Yield each word of a text in the form in which it is compared, before stemming.

    Case and invisible characters make no difference, and in English accents do not either.
    """
    for word in _lower_words(text, bounds):
        if word.isascii():
            yield word
        elif language == ENGLISH:
            yield _remove_accents(word.translate(_FOLDED))
        else:  # "schon" and "schön" are two words
            yield unicodedata.normalize("NFC", word)


def select_content_words(folded_words: Iterable[str]) -> list[str]:
    """Return the folded English words that are a term of every text in which they stand."""
    return [word for word in folded_words if "'" not in word and word not in STOP_WORDS]


def list_quoted_stems(quotation: str, language: str = ENGLISH) -> set[str]:
    """Return stems that each text has in which the folded words of a quotation stand."""
    folded_words = fold_words(quotation, words(quotation), language)
    if language == ENGLISH:
        return {find_stem(word) for word in select_content_words(folded_words)}
    terms = (_foreign_term(language, word) for word in folded_words)
    return {find_stem(term, language) for term in terms if term}


def _terms(text: str, bounds: Ints, language: str) -> Iterator[str]:
    """Yield the term of each word, "" for a stop word."""
    find_term = _english_term if language == ENGLISH else partial(_foreign_term, language)
    return map(find_term, _lower_words(text, bounds))


def _lower_words(text: str, bounds: Ints) -> Iterator[str]:
    """Yield each word in lower case, with its letters as they are typed."""
    for start, end in bounds.tolist():
        word = text[start:end].lower()
        yield word if word.isascii() else word.translate(_TYPED)


def _english_term(term: str) -> str:
    if not term.isascii():
        term = term.translate(_FOLDED)
    term = term.removesuffix("'s")
    return "" if term in STOP_WORDS else term


def _foreign_term(language: str, term: str) -> str:
    if not term.isascii():
        term = unicodedata.normalize("NFC", term)  # as the lists of stop words have them
    term = remove_elision(term, language)
    return "" if is_stop_word(term, language) else term
