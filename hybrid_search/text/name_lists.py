"""Lists of names in messages: all of a few, and of many those that are most like a given one."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

ALL_NAMES = 20
"""Up to so many names are listed."""
CLOSE_NAMES = 5
"""Names that are listed of more."""
COMPARED_NAMES = 10_000
"""Names that are compared at most; all of them take a tenth of a second."""


def list_names(names: Collection[str], word: str = "") -> str:
    """Return `names` for a message: those like `word` if there are many, and how many others.

    Without a name like it they are the first.
    """
    if len(names) <= ALL_NAMES:
        return ", ".join(names) or "none"
    ordered = sorted(names)
    close = get_close_matches(word, ordered[:COMPARED_NAMES], CLOSE_NAMES)
    shown = close or ordered[:CLOSE_NAMES]
    return f"{', '.join(shown)} and {len(ordered) - len(shown):,} more"
