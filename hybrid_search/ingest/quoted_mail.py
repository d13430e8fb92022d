"""Removal of quoted mails and signatures from a mail."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    while number < len(lines):
        if _ends_own_words(lines, number):
            break
        introduction = _count_introduction(lines, number)
        if introduction:
            number += introduction
            if not _is_quoted(next(filter(str.strip, lines[number:]), ">")):
                break  # the earlier mail is quoted without ">"
        elif _is_quoted(lines[number]):
            number += 1
        else:
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
    names = [
        match[1].lower() for item in lines[number : number + 5] if (match := _HEADER.match(item))
    ]
    return names[:1] == ["from"] and _HEADER.match(line) is not None and len(set(names)) > 2


def _count_introduction(lines: Sequence[str], number: int) -> int:
    """Return how many lines from here on introduce a quotation, 0 if none."""
    if not lines[number].startswith("On "):
        return 0
    for count in range(1, MAX_INTRODUCTION_LINES + 1):
        if _INTRODUCTION.fullmatch(" ".join(lines[number : number + count])):
            return count
    return 0
