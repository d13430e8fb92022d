"""Compares a query with the words of a file of codes and with their spans, where they lie, roughly.

Only the rows of some words and the norms of some spans are read. What is found is off by the
rounding of the query, and only decides which passages are scored exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.codes_file import CodesFile
from hybrid_search.backends.embedded.word_lists import Index, Places, expand
from hybrid_search.text.joined_words import HEADER, HEADERS, MAGIC, NO_WORD, Rows, row_type
from hybrid_search.text.types import Floats
from hybrid_search.text.word_vectors import NORM_STEPS, RoughWordQuery

LENGTHS = (2, 3, 5, 8)
"""Lengths in words of the spans that are compared, beside each word.

A passage whose best span has another length has one of these that is nearly as good.
"""

WORDS_TOGETHER = 1 << 15
"""Words that are read at once: 3 MB of codes, which fit into the cache."""

PASSAGES_TOGETHER = 512
"""Passages whose spans are compared at once."""

TINY = 1e-9

UNKNOWN = 1.0
"""The cosine of a passage whose codes changed: the exact step is to meet it, and tell of it."""


class WordSearch:
    """The words of a file of codes, for several threads; `lists` are those by centroids."""

    def __init__(self, file: CodesFile, dimension: int, bits: int) -> None:
        self.file, self.lists = file, file.lists
        self._type = row_type(dimension, bits)
        self._bits, self._dimension = bits, dimension
        self._bytes = np.frombuffer(file.data, np.uint8)

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.file)

    @property
    def row_bytes(self) -> int:
        """The bytes of the codes of one word."""
        return self._type.itemsize

    def score_words(
        self, query: RoughWordQuery, are_read: NDArray[np.bool_], usable: NDArray[np.bool_] | None
    ) -> tuple[Index, Floats]:
        """Return the positions of passages that have a word in some lists, and its best cosine.

        `are_read` says which lists, as of `choose_lists`, and `usable` which passages count, bool
        ``[passages]``; all do without it. The positions ascend, the cosines are float32.
        """
        places = self.lists.find(are_read)
        firsts = np.searchsorted(places, self.file.starts)
        counts = np.diff(firsts, append=len(places))
        if usable is not None:
            counts[~usable] = 0
            places = places[expand(firsts, counts)]
        passages = np.flatnonzero(counts)
        if not len(passages):
            return passages, np.zeros(0, np.float32)
        parts = range(0, len(places), WORDS_TOGETHER)
        cosines = np.concatenate(
            [query.multiply(self._gather(places[at : at + WORDS_TOGETHER])) for at in parts]
        )
        counts = counts[passages]
        return passages, np.maximum.reduceat(cosines, np.cumsum(counts) - counts)

    def score_spans(self, query: RoughWordQuery, passages: Index) -> Floats:
        """Return about the cosine of the best span of passages by their positions, float32."""
        return np.concatenate([np.zeros(0, np.float32), *self._score_spans(query, passages)])

    def _score_spans(self, query: RoughWordQuery, passages: Index) -> Iterator[Floats]:
        for first in range(0, len(passages), PASSAGES_TOGETHER):
            part = passages[first : first + PASSAGES_TOGETHER]
            starts, ends = self.file.starts[part], self.file.ends[part]
            headers = self._gather(starts, HEADERS)
            norms_at = starts + HEADER.size + headers["rows"].astype(np.int64) * self._type.itemsize
            is_whole = (headers["magic"] == MAGIC) & (headers["bits"] == self._bits)
            is_whole &= headers["dimension"] == self._dimension
            is_whole &= norms_at + headers["spans"] <= ends
            best = np.where(is_whole, np.float32(-1.0), np.float32(UNKNOWN))
            is_whole &= headers["words"] > 0
            if is_whole.any():
                rows = headers["rows"][is_whole].astype(np.int64)
                best[is_whole] = self._find_best(query, norms_at[is_whole], rows)
            yield best

    def _find_best(self, query: RoughWordQuery, norms_at: Index, row_counts: Index) -> Floats:
        """Return the best cosine of passages with so many rows, whose norms are at some places."""
        width = self._type.itemsize
        firsts = np.cumsum(row_counts) - row_counts
        numbers = np.arange(int(row_counts.sum())) - np.repeat(firsts, row_counts)
        rows = self._gather(np.repeat(norms_at - width * row_counts, row_counts) + width * numbers)
        cosines = query.multiply(rows)
        words = np.flatnonzero(rows["count"] != NO_WORD)
        if not len(words):  # the headers say otherwise
            return np.full(len(row_counts), UNKNOWN, np.float32)
        counts = rows["count"][words].astype(np.intp)
        best = np.where(counts > 0, cosines[words], np.float32(-1.0))
        lengths = np.nan_to_num(rows["length"].astype(np.float32), nan=0.0, posinf=0.0)
        begins, ends = _running_sums(cosines * lengths, words)
        length_begins, length_ends = _running_sums(lengths, words)
        first_words = np.searchsorted(words, firsts).clip(max=len(words) - 1)
        places = np.cumsum(counts) - counts
        of_passages = np.diff(first_words, append=len(words))
        places += np.repeat(norms_at - places[first_words], of_passages)
        for length in LENGTHS:
            starting = slice(None, 1 - length)
            steps = self._bytes.take(places[starting] + (length - 1), mode="clip")
            norms = steps / NORM_STEPS * (length_ends[length - 1 :] - length_begins[starting])
            of_length = (ends[length - 1 :] - begins[starting]) / np.maximum(norms, TINY)
            of_length[counts[starting] < length] = -1.0
            best[starting] = np.maximum(best[starting], of_length)
        highest: Floats = np.maximum.reduceat(best, first_words)
        return highest

    def _gather(self, places: Places | Index, kind: np.dtype[np.void] | None = None) -> Rows:
        """Return copies of the rows at some places of the file, which need not be aligned."""
        kind = kind or self._type
        width = kind.itemsize
        # as bytes of no type, as numpy copies a structure field by field
        everywhere: Rows = np.ndarray(
            (max(0, len(self.file.data) - width + 1),), f"V{width}", self.file.data, 0, (1,)
        )
        return everywhere[places].view(kind)


def _running_sums(values: Floats, words: Index) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the values of all rows before each word, and up to it."""
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums.take(words), sums.take(words + 1)
