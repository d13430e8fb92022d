"""Which document each passage of an embedded index belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import Key
from hybrid_search.backends.window import choose_window

Numbers = NDArray[np.int64]
"""Numbers of passages, or of documents."""


@dataclass(frozen=True, slots=True, eq=False)
class PassageDocuments:
    """The passages of an index in ascending order, and the number of the document of each."""

    passages: Numbers
    documents: Numbers

    def find(self, passages: Sequence[Key] | Numbers) -> Numbers:
        """Return the document of each passage; one without a document has one of its own."""
        numbers = np.asarray(passages, np.int64)
        if not len(self.passages):
            return -numbers
        rows = np.searchsorted(self.passages, numbers).clip(max=len(self.passages) - 1)
        return np.where(self.passages[rows] == numbers, self.documents[rows], -numbers)

    def count(self, passages: Sequence[Key] | Numbers) -> int:
        """Return how many documents some passages are of."""
        return len(set(self.find(passages).tolist()))  # of some hundred sooner than np.unique

    def choose(self, ranked: Sequence[Key], window: int) -> list[Key]:
        """Return the passages within the window of a leg, of some that are ranked."""
        positions = choose_window(self.find(ranked).tolist(), window)
        return [ranked[position] for position in positions]
