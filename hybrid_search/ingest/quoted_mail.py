"""Tell what the writer of a mail wrote from what the mail quotes, and from the signature."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_SIGNATURE_LINES = 15
"""Behind a line "--", more lines than these are no signature."""

MAX_INTRODUCTION_LINES = 3
"""Lines that "On Monday, 2 March 2026, Ann wrote:" may be broken into."""

_SIGNATURE = re.compile(r"--\s*")
_ORIGINAL = re.compile(r"\s*-{2,}\s*Original Message\s*-{2,}\s*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"On [^\n]*\d[^\n]*[,@][^\n]* wrote:\s*")
_HEADER = re.compile(r"\s*\*?(From|Sent|Date|To|Subject):", re.IGNORECASE)


def strip_quotes(text: str) -> str:
    """Return what the writer of a mail wrote: without quoted mails and the signature.

    Lines that begin with ">" go, with the line "On ... wrote:" before them. All that follows
    "-----Original Message-----", the header of a quoted mail, or "On ... wrote:" goes too.
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
                break  # the mail before is quoted without marks
        elif _is_quoted(lines[number]):
            number += 1
        else:
            kept.append(lines[number])
            number += 1
    return text if len(kept) == len(lines) else "\n".join(kept).strip()


def _is_quoted(line: str) -> bool:
    return line.lstrip().startswith(">")


def _ends_own_words(lines: Sequence[str], number: int) -> bool:
    """Return whether a signature or a whole quoted mail begins in a line."""
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
    """Return how many lines from here on say who wrote what is quoted, 0 if none."""
    if not lines[number].startswith("On "):
        return 0
    for count in range(1, MAX_INTRODUCTION_LINES + 1):
        if _INTRODUCTION.fullmatch(" ".join(lines[number : number + count])):
            return count
    return 0
