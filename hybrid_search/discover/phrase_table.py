"""Different phrases, with the mean of their vectors over all places where they are said."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid_search.discover.clauses import normalize_rows
from hybrid_search.discover.types import Occurrence
from hybrid_search.discover.word_tree import normalize
from hybrid_search.text.types import Floats
from hybrid_search.topics.types import Integers

NO_DOCUMENT = -1
"""The document number of a phrase that is in no document."""


@dataclass(frozen=True, slots=True, eq=False)
class PhraseTable:
    """Different phrases.

    Attributes:
        texts: One wording of each phrase.
        vectors: The mean over its places, of length 1, float32 ``[phrases, dimension]``.
        examples: The first place of each phrase, None if there is none.
        owners: The phrase of each place or line, int64 ``[places]``.
        documents: The number of each place's document, or `NO_DOCUMENT`, int64 ``[places]``.
    """

    texts: list[str]
    vectors: Floats
    examples: list[Occurrence | None]
    owners: Integers
    documents: Integers

    @property
    def counts(self) -> Integers:
        """How many places each phrase has, int64 ``[phrases]``."""
        counts: NDArray[np.int64] = np.bincount(self.owners, minlength=len(self.texts))
        return counts


@dataclass(slots=True, eq=False)
class TableBuilder:
    """Collects places; the same words are one phrase, whatever their case and punctuation."""

    _numbers: dict[str, int] = field(default_factory=dict)
    _document_numbers: dict[str, int] = field(default_factory=dict)
    _texts: list[str] = field(default_factory=list)
    _examples: list[Occurrence | None] = field(default_factory=list)
    _sums: list[Floats] = field(default_factory=list)
    _owners: list[int] = field(default_factory=list)
    _documents: list[int] = field(default_factory=list)

    def add(self, text: str, vector: NDArray[np.floating], place: Occurrence | None) -> None:
        """Take a phrase with its unit vector at a place, None if it is in no document."""
        number = self._numbers.setdefault(normalize(text) or text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
            self._examples.append(place)
            self._sums.append(np.zeros(len(vector), dtype=np.float32))
        self._sums[number] += vector
        self._owners.append(number)
        documents = self._document_numbers
        self._documents.append(
            documents.setdefault(place.id, len(documents)) if place else NO_DOCUMENT
        )

    def __contains__(self, text: str) -> bool:
        return (normalize(text) or text) in self._numbers

    def build(self) -> PhraseTable:
        """Return the phrases, in the order in which they came first."""
        sums = np.stack(self._sums) if self._sums else np.zeros((0, 1), dtype=np.float32)
        return PhraseTable(
            self._texts,
            normalize_rows(sums),
            self._examples,
            np.array(self._owners, dtype=np.int64),
            np.array(self._documents, dtype=np.int64),
        )
