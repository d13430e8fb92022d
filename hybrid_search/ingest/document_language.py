"""The language of documents that do not say theirs: one for all, or detected turn by turn."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import UsageError
from hybrid_search.text.languages import (
    FIELD,
    LANGUAGES,
    describe_unknown,
    detect_language,
    parse_language,
)
from hybrid_search.text.types import Document

_log = logging.getLogger(__name__)

DETECT = "detect"
"""The setting by which the language of each document is detected."""

FEWEST_WORDS = 4
"""Words of a turn whose language is detected: "OK", "Hotel" and names are the same in many."""

LEAST_SHARE = 0.1
"""The share of a document's words from which on a language is one of its own."""


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
    language = detect_languages(document) if setting == DETECT else setting
    return replace(document, metadata={**document.metadata, FIELD: language})


def detect_languages(document: Document) -> str | list[str]:
    """Return the code of the language that a document is in, or a list of several.

    A language counts if `LEAST_SHARE` of the words are in turns of that language. Turns of fewer
    than `FEWEST_WORDS` words tell too little.
    """
    words_by_language: Counter[str] = Counter()
    for turn in document.turns:
        count = len(turn.text.split())
        if count >= FEWEST_WORDS:
            words_by_language[detect_language(turn.text)] += count
    least = LEAST_SHARE * words_by_language.total()
    codes = [code for code, count in words_by_language.most_common() if count >= least]
    if len(codes) > 1:
        return codes
    return codes[0] if codes else detect_language(document.text)


def warn_of_languages(counts: Mapping[str, int], model: EncoderInfo) -> None:
    """Warn of documents in languages that a model does not know.

    `counts` are the documents by what they say of their language.
    """
    unknown: Counter[str] = Counter()
    for value, count in counts.items():
        code = parse_language(value)
        if code and code not in model.languages:
            unknown[code] += count
    if model.languages and unknown:
        names = sorted(LANGUAGES[code].capitalize() for code in unknown)
        _log.warning(
            "%d documents are in %s, but %s. Their words are found, their meanings hardly",
            unknown.total(),
            " or ".join(names),
            describe_unknown(unknown, model.name, model.languages),
        )
