"""Where sentences begin and end: a plain cut behind full stops, exclamation and question marks."""

from __future__ import annotations

import regex

_SENTENCE = regex.compile(r"\S.*?(?:[.!?]+(?=\s)|\Z)", flags=regex.DOTALL)


def sentences(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, in code points; a cut also falls behind an abbreviation."""
    return [match.span() for match in _SENTENCE.finditer(text)]
