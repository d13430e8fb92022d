"""Find the words of a text that a place in it overlaps."""

from __future__ import annotations

import numpy as np

from hybrid_search.text.types import Ints


def find_words(bounds: Ints, start: int, end: int) -> tuple[int, int] | None:
    """Return the first word that overlaps a place and the word behind the last one, if any."""
    inside = np.flatnonzero((bounds[:, 0] < end) & (bounds[:, 1] > start))
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else None
