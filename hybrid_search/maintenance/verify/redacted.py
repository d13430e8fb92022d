"""Search an index for words that must be gone: texts, terms, and the bytes of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.errors import UsageError
from hybrid_search.text.words import distinct_words

SHORTEST = 6
"""Bytes of a word that is looked for in the bytes of files: a shorter one is there by chance."""

TERM_DOCUMENTS = 1000
"""Documents with one term that are looked at; a term of more is no secret."""


@dataclass(frozen=True, slots=True)
class FoundWord:
    """Where a word still is: `line` is that of the file of words, and `place` has none of them."""

    line: int
    place: str


@dataclass(slots=True)
class WordsCheck:
    """What was searched for words that must be gone, and where some still are.

    `remains` tell of deleted documents that are not purged, which nothing else can search.
    """

    index: str
    words: int
    passages: int = 0
    terms: int = 0
    bytes: int = 0
    found: list[FoundWord] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """True if no word was found and nothing is left of deleted documents."""
        return not self.found and not self.remains

    def to_dict(self) -> dict[str, Any]:
        """Return the report as ``verify --redacted --json`` prints it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Word:
    line: int
    text: str
    pattern: re.Pattern[str]
    forms: frozenset[bytes]

    @classmethod
    def build(cls, line: int, text: str) -> _Word:
        folded = text.casefold()
        start = r"(?<!\w)" if text[0].isalnum() else ""
        end = r"(?!\w)" if text[-1].isalnum() else ""
        escaped = "|".join(re.escape(form) for form in {folded, *_escape(folded)})
        pattern = re.compile(f"{start}(?:{escaped}){end}")
        spelled = {text, text.lower(), text.upper(), folded}
        forms = spelled | {form for own in spelled for form in _escape(own)}
        return cls(line, text, pattern, frozenset(form.encode().lower() for form in forms))

    def is_in_text(self, folded: str) -> bool:
        """Return whether the word is in a casefolded text, as a whole."""
        return self.pattern.search(folded) is not None

    def is_in_bytes(self, lowered: bytes) -> bool:
        """Return whether the word is in bytes, whose ASCII letters are small."""
        return any(len(form) >= SHORTEST and form in lowered for form in self.forms)


def search_words(backend: Backend, index: str, lines: Iterable[str]) -> WordsCheck:
    """Search an index for words that must be gone.

    What is stored of every passage is read, BM25 is asked for each term, and of an index on this
    machine the bytes of every file are searched.

    Args:
        backend: Where the index is.
        index: Name of the index.
        lines: The words, as they were said, one text a line. Upper and lower case are the same.

    Returns:
        What was searched, and where words still are.

    Raises:
        UsageError: If there are no words.
    """
    words = [_Word.build(number, text.strip()) for number, text in _number(lines)]
    if not words:
        raise UsageError("there are no words to search for: give one text a line")
    check = WordsCheck(index, len(words), remains=backend.list_remains(index))
    found: dict[FoundWord, None] = {}
    for document_id, stored in backend.iterate_stored(index):
        check.passages += 1
        text = stored.casefold()
        hits = [word for word in words if word.is_in_text(text)]
        found |= {FoundWord(word.line, f"document {document_id!r}"): None for word in hits}
    found |= dict.fromkeys(_search_terms(backend, index, words, check))
    for name, data in backend.iterate_files(index):
        check.bytes += len(data)
        lowered = data.lower()
        hits = [word for word in words if word.is_in_bytes(lowered)]
        found |= {FoundWord(word.line, f"file {name}"): None for word in hits}
    check.found = list(found)
    return check


def _number(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _search_terms(
    backend: Backend, index: str, words: Sequence[_Word], check: WordsCheck
) -> Iterator[FoundWord]:
    """Yield the terms by which BM25 finds a passage whose text does not have them."""
    terms = {term: word.line for word in words for term in distinct_words(word.text)}
    check.terms = len(terms)
    for term, line in terms.items():
        request = Request(
            term, np.zeros(1, np.float32), TERM_DOCUMENTS, lexical=True, semantic=False
        )
        passages = [item for item in backend.find(index, request).passages if item.bm25 > 0]
        if passages:
            marked = backend.find_highlights(index, request, [item.key for item in passages])
            for item in passages:
                if item.key not in marked:
                    yield FoundWord(line, f"a term of document {item.document_id!r}")


def _escape(text: str) -> set[str]:
    """Return a text as strings of JSON have it."""
    return {json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True)}
