"""Collect the clauses of a scan in bounded memory: of all documents, a half, a quarter, and so on.

Each document has a fixed random number from its id and the seed. When the clauses get too many,
documents with a number in the upper half are dropped, and ignored from then on. The sample does not
depend on the order of the scan: it is the largest that fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hybrid_search.discover.phrase_table import PhraseTable, TableBuilder
from hybrid_search.discover.types import Occurrence
from hybrid_search.text.types import Floats, Halves

CAPACITY = 250_000
"""Clauses in memory: about 220 MB with vectors of 256 numbers."""


@dataclass(slots=True, eq=False)
class ClauseStore:
    """Holds clauses with their vectors.

    Attributes:
        seed: Of the sample of documents.
        capacity: How many clauses it holds at most, at least 1.
        halvings: How often the sample was cut to half.
    """

    seed: int
    capacity: int = CAPACITY
    halvings: int = 0
    _places: list[Occurrence] = field(default_factory=list)
    _vectors: list[Halves] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def places(self) -> Sequence[Occurrence]:
        """The places of the clauses, in the order of `PhraseTable.owners`."""
        return self._places

    @property
    def sampled(self) -> float:
        """The share of all documents in the sample."""
        return 0.5**self.halvings

    def takes(self, document_id: str) -> bool:
        """Return whether a document is in the sample, as it is now."""
        text = f"{self.seed}/{document_id}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
        return number >> (64 - self.halvings) == 0

    def add(self, place: Occurrence, vector: Floats) -> None:
        """Take a clause, if its document is in the sample."""
        if not self.takes(place.id):
            return
        self._places.append(place)
        self._vectors.append(vector.astype(np.float16))
        while len(self._places) > self.capacity and self.halvings < 64:
            self.halvings += 1
            self._drop_documents()

    def fold(self) -> PhraseTable:
        """Return the different wordings: clauses of the same words are one phrase.

        Its vector is the mean over all the contexts in which it was said, as in McPhraSy.
        """
        builder = TableBuilder()
        for place, vector in zip(self._places, self._vectors, strict=True):
            builder.add(place.text, vector, place)
        return builder.build()

    def _drop_documents(self) -> None:
        rows = [row for row, place in enumerate(self._places) if self.takes(place.id)]
        self._places = [self._places[row] for row in rows]
        self._vectors = [self._vectors[row] for row in rows]
