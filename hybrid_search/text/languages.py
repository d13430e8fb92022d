"""The languages whose words BM25 reduces to stems, and which of them a passage is in.

A document says its language in the metadata field `FIELD`, or several, of which the nearest is
chosen for each passage. Without one, and in a language that is not in `LANGUAGES`, its words are
cut as English ones are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from hybrid_search.text.words import make_word_set

if TYPE_CHECKING:
    import tantivy
    from py3langid.langid import LanguageIdentifier

FIELD = "language"
"""The metadata field with the language of a document, or a list of several."""

DETECTED_CHARACTERS = 5000
"""How much of a text is read to detect its language."""

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

CERTAIN = 0.9
"""The least probability of a language that is recognised in a phrase.

Of 2,898 phrases in each of seven languages most reach it, .70 in English to .88 in German, and none
of these is taken for another language (``export/data/written/parallel_phrases.jsonl``).
"""

MULTILINGUAL_MODEL = "slice-multilingual"
MULTILINGUAL_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
"""The languages of the model of this project that knows several (``models/``)."""

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


def find_language(metadata: Mapping[str, Any], text: str) -> str:
    """Return the code of the language by which the words of a passage of a document are cut."""
    codes = set(filter(None, map(parse_language, iterate_values(metadata.get(FIELD)))))
    return detect_language(text, codes) if len(codes) > 1 else next(iter(codes), ENGLISH)


def recognise_language(text: str) -> str | None:
    """Return the code of the language that a short text is in; None unless that is certain."""
    (code, probability), *_ = _identifier().rank(text[:DETECTED_CHARACTERS])
    is_phrase = len(text.split()) > 1  # names and brands look like any language
    return str(code) if is_phrase and probability >= CERTAIN else None


def describe_unknown(codes: Iterable[str], model: str, known: Iterable[str]) -> str:
    """Return for which languages a model is made, and which other model knows those of `codes`."""
    names = sorted({_name_language(code) for code in codes if code in MULTILINGUAL_LANGUAGES})
    made_for = f"{model} is made for {' and '.join(map(_name_language, known))}"
    return f"{made_for}; {MULTILINGUAL_MODEL} knows {' and '.join(names)}" if names else made_for


def _name_language(code: str) -> str:
    return LANGUAGES.get(code, code).capitalize()


def list_languages(values: Iterable[object]) -> list[str]:
    """Return the codes of the languages of documents with these values of `FIELD`, and English."""
    single_values = (single for value in values for single in iterate_values(value))
    return sorted({ENGLISH, *filter(None, map(parse_language, single_values))})


def iterate_values(value: object) -> Iterator[object]:
    """Yield what a document says of its languages, one by one."""
    yield from value if isinstance(value, list) else (value,)


def detect_language(text: str, codes: Collection[str] = LANGUAGES) -> str:
    """Return which of some languages of `LANGUAGES` a text is most likely in, by its code."""
    ranked = _identifier().rank(text[:DETECTED_CHARACTERS])
    return next(str(code) for code, _ in ranked if code in codes)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # a tenth of a second

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


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
