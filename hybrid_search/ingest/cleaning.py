"""Cleaning of document texts before they are indexed; offsets refer to the cleaned text.

Queries import this module, so libraries for cleaning are imported only on use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The parts to remove from the texts of documents."""

    html: bool = False
    """HTML tags and invisible content; entities such as ``&amp;`` are decoded."""
    quotes: bool = False
    """Quoted earlier mails, and the signature."""

    def clean_document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a document with its text, or the texts of its turns, cleaned."""
        if not (self.html or self.quotes):
            return document
        cleaned = dict(document)
        if isinstance(document.get("text"), str):
            cleaned["text"] = self.clean_text(document["text"])
        if isinstance(document.get("turns"), list):
            cleaned["turns"] = [self._clean_turn(turn) for turn in document["turns"]]
        return cleaned

    def clean_text(self, text: str) -> str:
        """Return the cleaned text."""
        from hybrid_search.ingest.html_text import has_html, strip_html

        if self.html and has_html(text):
            text = strip_html(text, quotes=self.quotes)
        return strip_quotes(text) if self.quotes else text

    def _clean_turn(self, turn: Any) -> Any:
        """Return the cleaned turn; word times are dropped if its text changed."""
        text = turn.get("text") if isinstance(turn, dict) else None
        if not isinstance(text, str) or (cleaned_text := self.clean_text(text)) == text:
            return turn
        others = {key: value for key, value in turn.items() if key != "word_times"}
        return {**others, "text": cleaned_text}


NOTHING = Cleaning()
"""No cleaning."""


MAX_SIGNATURE_LINES = 15
"""More lines than this after a line "--" are not a signature."""

MAX_INTRODUCTION_LINES = 3
"""Maximum lines of an introduction such as "On Monday, 2 March 2026, Ann wrote:"."""

_SIGNATURE = re.compile(r"--\s*")
_ORIGINAL = re.compile(r"\s*-{2,}\s*Original Message\s*-{2,}\s*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"On [^\n]*\d[^\n]*[,@][^\n]* wrote:\s*")
_HEADER = re.compile(r"\s*\*?(From|Sent|Date|To|Subject):", re.IGNORECASE)


def strip_quotes(text: str) -> str:
    """Return a mail without quoted mails and the signature.

    Lines that start with ">" are removed, with the line "On ... wrote:" before them. So is
    everything after "-----Original Message-----", the header of a quoted mail, or "On ... wrote:".
    """
    lines = text.splitlines()
    kept: list[str] = []
    number = 0
    while number < len(lines) and not _ends_own_words(lines, number):
        introduction = _count_introduction(lines, number)
        if introduction:
            number += introduction
            if not _is_quoted(next(filter(str.strip, lines[number:]), ">")):
                break  # the earlier mail is quoted without ">"
            continue
        if not _is_quoted(lines[number]):
            kept.append(lines[number])
        number += 1
    return text if len(kept) == len(lines) else "\n".join(kept).strip()


def _is_quoted(line: str) -> bool:
    return line.lstrip().startswith(">")


def _ends_own_words(lines: Sequence[str], number: int) -> bool:
    """Return whether a signature or a whole quoted mail starts at a line."""
    line = lines[number]
    if _ORIGINAL.fullmatch(line):
        return True
    if _SIGNATURE.fullmatch(line):
        rest = [item for item in lines[number + 1 :] if item.strip() and not _is_quoted(item)]
        return len(rest) <= MAX_SIGNATURE_LINES
    headers = [_HEADER.match(item) for item in lines[number : number + 5]]
    names = [header[1].lower() if header else "" for header in headers]
    return names[0] == "from" and len({*names} - {""}) > 2


def _count_introduction(lines: Sequence[str], number: int) -> int:
    """Return how many lines from here on introduce a quotation, 0 if none."""
    if lines[number].startswith("On "):
        for count in range(1, MAX_INTRODUCTION_LINES + 1):
            if _INTRODUCTION.fullmatch(" ".join(lines[number : number + count])):
                return count
    return 0
