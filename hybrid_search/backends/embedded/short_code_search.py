"""Finds the passages that are nearest to a query, by their short codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search.backends.embedded.short_codes import (
    WORDS,
    Counts,
    LayerCodes,
    Rows,
    ShortCodes,
)
from hybrid_search.backends.embedded.word_lists import WordLists
from hybrid_search.backends.short_vectors import ShortQuery
from hybrid_search.text.types import Bytes, Codes, Floats

MOST = 0.75
"""Where a larger share of the passages is compared, all are: to copy their codes takes longer."""


class ShortCodeSearch:
    """Scores the passages of `ShortCodes`, with what is computed of them only once."""

    def __init__(self, codes: ShortCodes) -> None:
        self.codes = codes
        self._starts = [_starts(layer.counts) for layer in codes.layers]
        self._lists: WordLists | None = None

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.codes.passages)

    def find(self, passage: int) -> ShortCodes | None:
        """Return the short codes of a passage by its number, or None if it is not here."""
        row = int(np.searchsorted(self.codes.passages, passage))
        if row == len(self) or self.codes.passages[row] != passage:
            return None
        layers = []
        for layer, starts in zip(self.codes.layers, self._starts, strict=True):
            start, count = int(starts[row]), int(layer.counts[row])
            layers.append(
                LayerCodes(layer.counts[row : row + 1], layer.codes[start : start + count])
            )
        start = int(self._starts[WORDS][row])
        centroids = self.codes.centroids[start : start + len(layers[WORDS].codes)]
        return ShortCodes(self.codes.passages[row : row + 1], tuple(layers), centroids)

    def list_words(self, centroids: int) -> WordLists:
        """Return the words by their centroids, of which there are so many; listed only once."""
        if self._lists is None:
            self._lists = WordLists.from_centroids(self.codes.centroids, centroids)
        return self._lists

    def score_all(self, queries: Sequence[ShortQuery]) -> Floats:
        """Return the `score` of all passages in the first layer."""
        return _score(self.codes.layers[0].codes, self._starts[0], queries[0])

    def score_listed(
        self, queries: Sequence[ShortQuery], lists: WordLists, centroids: Rows
    ) -> tuple[Rows, Floats]:
        """Return the passages that have a word in the lists of some centroids, and their cosines.

        A cosine is that of the nearest of these words, about, see `score`.

        Args:
            queries: The query in each of `LAYERS`.
            lists: What `list_words` returned.
            centroids: The numbers of the centroids.

        Returns:
            The positions of the passages, ascending, and float32 ``[passages]``.
        """
        starts = lists.starts[centroids]
        # in the order of the file, which is read faster and puts the words of a passage together
        words = np.sort(lists.words[_ranges(starts, lists.starts[centroids + 1] - starts)])
        cosines = queries[WORDS].multiply(self.codes.layers[WORDS].codes.take(words, axis=0))
        owners = np.searchsorted(self._starts[WORDS], words, side="right") - 1
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        if not len(firsts):
            return owners, cosines
        return owners[firsts], np.maximum.reduceat(cosines, firsts)

    def score(self, queries: Sequence[ShortQuery], layer: int, rows: Rows) -> Floats:
        """Return the cosine of some passages' nearest windows, about, float32 ``[rows]``.

        It is that of the numbers that the layer has of the vectors.

        Args:
            queries: The query in each of `LAYERS`.
            layer: The position of the layer among `LAYERS`.
            rows: The positions of the passages to score.
        """
        counts, codes = self.codes.layers[layer].counts, self.codes.layers[layer].codes
        if len(rows) > MOST * len(self):
            return _score(codes, self._starts[layer], queries[layer])[rows]
        # np.take needs 1/2 of the time of an index
        own_codes = codes.take(_ranges(self._starts[layer][rows], counts[rows]), axis=0)
        return _score(own_codes, _starts(counts[rows]), queries[layer])


def _score(codes: Codes | Bytes, starts: Rows, query: ShortQuery) -> Floats:
    """Return the largest cosine of each passage, whose codes begin at `starts`."""
    if not len(starts):
        return np.zeros(0, np.float32)
    best: Floats = np.maximum.reduceat(query.multiply(codes), starts)
    return best


def _ranges(starts: Rows | Counts, counts: Counts) -> Rows:
    """Return the numbers from each start on, as many as its count, one range after the other."""
    ends = np.cumsum(counts, dtype=np.intp)
    shifts = starts - (ends - counts)
    ranges: Rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(shifts, counts)
    return ranges


def _starts(counts: Counts) -> Rows:
    """Return where each passage's windows begin, if they lie one after the other."""
    starts: Rows = np.cumsum(counts, dtype=np.intp) - counts
    return starts
