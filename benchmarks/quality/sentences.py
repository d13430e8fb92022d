"""Cut texts into sentences: plainly, behind full stops, exclamation and question marks."""

from __future__ import annotations

import regex

_SENTENCE = regex.compile(r"\S.*?(?:[.!?]+(?=\s)|\Z)", flags=regex.DOTALL)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence, in code points; abbreviations are cut too."""
    return [match.span() for match in _SENTENCE.finditer(text)]
