"""Different phrases, with the mean of their vectors over all places where they are said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


PhrasePlace = tuple[str, NDArray[np.floating], Occurrence | None]
"""A phrase with its unit vector at a place, None if it is in no document."""


def build_table(rows: Iterable[PhrasePlace]) -> PhraseTable:
    """Return the phrases of some places, in the order in which they came first.

    The same words are one phrase, whatever their case and punctuation.
    """
    numbers: dict[str, int] = {}
    document_numbers: dict[str, int] = {}
    texts: list[str] = []
    examples: list[Occurrence | None] = []
    sums: list[Floats] = []
    owners: list[int] = []
    documents: list[int] = []
    for text, vector, place in rows:
        number = numbers.setdefault(make_key(text), len(texts))
        if number == len(texts):
            texts.append(text)
            examples.append(place)
            sums.append(np.zeros(len(vector), dtype=np.float32))
        sums[number] += vector
        owners.append(number)
        documents.append(
            document_numbers.setdefault(place.id, len(document_numbers)) if place else NO_DOCUMENT
        )
    return PhraseTable(
        texts,
        normalize_rows(np.stack(sums) if sums else np.zeros((0, 1), dtype=np.float32)),
        examples,
        np.array(owners, dtype=np.int64),
        np.array(documents, dtype=np.int64),
    )


def make_key(text: str) -> str:
    """Return what phrases of the same words share, whatever their case and punctuation."""
    return normalize(text) or text
