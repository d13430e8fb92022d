"""The language of documents that do not say theirs: one for all, or detected."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import UsageError
from hybrid_search.text.languages import FIELD, LANGUAGES, parse_language
from hybrid_search.text.types import Document

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_log = logging.getLogger(__name__)

DETECT = "detect"
"""The setting by which the language of each document is detected."""

DETECTED_CHARACTERS = 5000
"""How much of a document is read to detect its language."""


def check_language(setting: str | None) -> str | None:
    """Return a setting as the code of its language; raise UsageError for an unknown one."""
    if setting is None or setting == DETECT:
        return setting
    if code := parse_language(setting):
        return code
    choices = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
    raise UsageError(f"language is {setting!r}: use {DETECT}, or one of {choices}")


def name_language(document: Document, setting: str | None) -> Document:
    """Return a document with the language of a setting, unless it says its own."""
    if setting is None or document.metadata.get(FIELD) is not None:
        return document
    code = detect_language(document.text) if setting == DETECT else setting
    return replace(document, metadata={**document.metadata, FIELD: code})


def detect_language(text: str) -> str:
    """Return the code of the language of `LANGUAGES` that a text is most likely in."""
    code, _ = _identifier().classify(text[:DETECTED_CHARACTERS])
    return str(code)


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def warn_of_languages(counts: Mapping[str, int], model: EncoderInfo) -> None:
    """Warn of documents in languages that a model does not know.

    `counts` are the documents by what they say of their language.
    """
    of_languages: Counter[str] = Counter()
    for value, count in counts.items():
        code = parse_language(value)
        if code and code not in model.languages:
            of_languages[LANGUAGES[code].capitalize()] += count
    if model.languages and of_languages:
        known = [LANGUAGES.get(code, code).capitalize() for code in model.languages]
        _log.warning(
            "%d documents are in %s, but %s is made for %s: their words are found, their meanings "
            "hardly. Use a model that knows the language (--model)",
            of_languages.total(),
            " or ".join(sorted(of_languages)),
            model.name,
            " and ".join(known),
        )
