"""Markers that a search engine puts around matching words, and the offsets read from them."""

from __future__ import annotations

import secrets

OPEN, CLOSE = (f"\ue000{secrets.token_hex(8)}{side}" for side in "([")
"""The markers before and after a matching word.

They consist of a private-use character and a random number, so that no text contains them by
chance.
"""


def parse_marks(marked: str) -> list[tuple[int, int]]:
    """Return start and end of each marked range, in code points of the text without markers."""
    ranges, position = [], 0
    for part in marked.split(OPEN):
        word, close, text_after = part.partition(CLOSE)
        if close:
            ranges.append((position, position + len(word)))
        position += len(word) + len(text_after)
    return ranges


def strip_marks(marked: str) -> str:
    """Return the text without its markers."""
    return marked.replace(OPEN, "").replace(CLOSE, "")
