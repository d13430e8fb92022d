"""Which documents can be among the best of both legs, before their scores are known exactly.

A page is in the order of a sum of two parts, and each part grows with the score of one leg. So a
passage cannot be on a page of ten documents if passages of ten documents have higher scores in both
legs, whatever alpha is. The passages that remain are the k-skyband: Papadias, Tao, Fu and Seeger,
"Progressive Skyline Computation in Database Systems", 2005.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which two numbers a score is."""

    low: float
    high: float


ABSENT = Bounds(0.0, 0.0)
"""The score of a leg that does not count."""

UNKNOWN = Bounds(-inf, inf)


@dataclass(frozen=True, slots=True)
class PassageBounds:
    """A passage with what is known of its two scores.

    `first` and `second` are the legs, in either order, but the same for all passages.
    """

    document: str
    first: Bounds
    second: Bounds


def find_possible_documents(passages: Sequence[PassageBounds], count: int) -> set[str]:
    """Return the documents of the passages that can be among those of the `count` best documents.

    A passage cannot if passages of `count` documents are not below it in the first score, and above
    it in the second, wherever the scores are within their bounds.
    """
    ranking = _DocumentRanking(count)
    rivals = iter(sorted(passages, key=lambda passage: -passage.first.low))
    rival = next(rivals, None)
    possible = set()
    for passage in sorted(passages, key=lambda passage: -passage.first.high):
        while rival is not None and rival.first.low >= passage.first.high:
            ranking.add(rival.document, rival.second.low)
            rival = next(rivals, None)
        if not ranking.exceeds(passage.second.high):
            possible.add(passage.document)
    return possible


class _DocumentRanking:
    """The best scores of documents."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._best_by_document: dict[str, float] = {}
        self._scores: list[float] = []

    def add(self, document: str, score: float) -> None:
        """Add a passage of a document."""
        best = self._best_by_document.get(document)
        if best is not None:
            if best >= score:
                return
            del self._scores[bisect_left(self._scores, best)]
        self._best_by_document[document] = score
        insort(self._scores, score)

    def exceeds(self, score: float) -> bool:
        """Return whether enough documents have a higher score."""
        return len(self._scores) - bisect_right(self._scores, score) >= self._count
