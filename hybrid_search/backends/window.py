"""Cuts a leg to its window, so that one long document never takes all of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def choose_window(documents: Iterable[Hashable], window: int) -> list[int]:
    """Return the positions of the passages that are within the window of a leg.

    They are the best `window` passages, and the best passage of each further document until there
    are `window` documents.

    Args:
        documents: The document of each passage, the best passage first.
        window: How many passages and documents, from 1.
    """
    positions: list[int] = []
    seen: set[Hashable] = set()
    for position, document in enumerate(documents):
        if position < window or document not in seen:
            positions.append(position)
            seen.add(document)
        if len(seen) == window:
            break
    return positions
