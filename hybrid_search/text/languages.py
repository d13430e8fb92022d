"""The languages whose words BM25 reduces to stems, and which of them a document is in.

A document says its language in the metadata field `FIELD`. Without one, and in a language that is
not in `LANGUAGES`, its words are cut as English ones are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hybrid_search.text.words import make_word_set

if TYPE_CHECKING:
    import tantivy

FIELD = "language"
"""The metadata field with the language of a document."""

ENGLISH = "en"

LANGUAGES = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
}
"""ISO 639-1 codes, and the names that Snowball, tantivy and the analyzers of servers share.

For each of these languages tantivy has stop words.
"""

_CODES = {
    **{code: code for code in LANGUAGES},
    **{name: code for code, name in LANGUAGES.items()},
    **dict(
        pair.split("=")
        for pair in make_word_set(
            "dan=da deu=de dut=nl eng=en fin=fi fra=fr fre=fr ger=de hun=hu ita=it nb=no nld=nl"
            " nn=no nno=no nob=no nor=no por=pt rus=ru spa=es swe=sv"
        )
    ),
}
"""The codes of `LANGUAGES` by what stands for them.

These are the codes themselves, names, codes of ISO 639-2 and 639-3, and the two forms of Norwegian.
"""

_ELIDED = {
    "fr": make_word_set("l m t qu n s j d c jusqu quoiqu lorsqu puisqu"),
    "it": make_word_set(
        "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d"
    ),
}
"""What stands before an apostrophe and is a word of its own: "l'hôtel", "dell'ordine"."""


def parse_language(value: object) -> str | None:
    """Return the code of a language in `LANGUAGES`, or None.

    Read are codes with or without a region (``de``, ``de-AT``, ``deu``), and English names.
    """
    if not isinstance(value, str):
        return None
    return _CODES.get(value.strip().lower().replace("_", "-").partition("-")[0])


def find_language(metadata: Mapping[str, Any]) -> str:
    """Return the code of the language by which the words of a document are cut."""
    return parse_language(metadata.get(FIELD)) or ENGLISH


def list_languages(values: Iterable[object]) -> list[str]:
    """Return the codes of the languages of documents with these values of `FIELD`, and English."""
    return sorted({ENGLISH, *filter(None, map(parse_language, values))})


def remove_elision(term: str, language: str) -> str:
    """Return a term in lower case without an article that is joined to it by an apostrophe."""
    article, _, word = term.partition("'")
    return word if word and article in _ELIDED.get(language, ()) else term


@lru_cache(maxsize=100_000)
def is_stop_word(term: str, language: str) -> bool:
    """Return whether a term in lower case is too frequent in its language to tell anything."""
    return not _stop_words(language).analyze(term)


@lru_cache
def _stop_words(language: str) -> tantivy.TextAnalyzer:
    """Return tantivy's list of stop words, which it has as a filter of terms."""
    import tantivy  # only where another language than English is met

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    return builder.filter(tantivy.Filter.stopword(LANGUAGES[language])).build()
