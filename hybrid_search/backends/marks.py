"""Where words matched, read from a text that a search engine has marked."""

from __future__ import annotations

import secrets

OPEN, CLOSE = (f"\ue000{secrets.token_hex(8)}{side}" for side in "([")
"""What stands before and behind a matching word: letters of no script and a random number, so that no text holds them by chance."""


def places(marked: str) -> list[tuple[int, int]]:
    """Start and end of each marked stretch, in code points of the text without its marks."""
    found, at = [], 0
    for piece in marked.split(OPEN):
        word, close, behind = piece.partition(CLOSE)
        if close:
            found.append((at, at + len(word)))
        at += len(word) + len(behind)
    return found


def unmarked(marked: str) -> str:
    """The text without its marks."""
    return marked.replace(OPEN, "").replace(CLOSE, "")
