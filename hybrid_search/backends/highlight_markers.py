"""Where words matched, read from a text that a search engine has marked."""

from __future__ import annotations

import secrets

OPEN, CLOSE = (f"\ue000{secrets.token_hex(8)}{side}" for side in "([")
"""What stands before and behind a matching word: letters of no script and a random number, so that
no text holds them by chance.
"""


def parse_marks(marked: str) -> list[tuple[int, int]]:
    """Start and end of each marked stretch, in code points of the text without its marks."""
    ranges, position = [], 0
    for part in marked.split(OPEN):
        word, close, text_after = part.partition(CLOSE)
        if close:
            ranges.append((position, position + len(word)))
        position += len(word) + len(text_after)
    return ranges


def strip_marks(marked: str) -> str:
    """The text without its marks."""
    return marked.replace(OPEN, "").replace(CLOSE, "")
