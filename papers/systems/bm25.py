"""BM25 as in the SLICE paper: rank-bm25's Okapi, k1 1.5, b .75.

Document frequencies and mean length come from a reference corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.libraries import import_library
from hybrid_search.text.types import Floats
from hybrid_search.text.words import words


class Bm25:
    """Scores texts outside the corpus by the corpus's statistics.

    A term that no document of the corpus has counts as if one had.
    """

    def __init__(self, reference: Iterable[str]) -> None:
        self._okapi: Any = import_library("rank_bm25").BM25Okapi(
            [terms(text) for text in reference]
        )
        self._unseen = float(np.log(self._okapi.corpus_size - 1 + 0.5) - np.log(1 + 0.5))

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return BM25 of each text for the query beside it."""
        return np.array(
            [
                self._score(terms(query), terms(text))
                for query, text in zip(queries, texts, strict=True)
            ],
            dtype=np.float32,
        )

    def _score(self, query: Sequence[str], text: Sequence[str]) -> float:
        counts = {term: text.count(term) for term in set(query)}
        k1, b = float(self._okapi.k1), float(self._okapi.b)
        norm = k1 * (1 - b + b * len(text) / float(self._okapi.avgdl))

        def term_score(term: str) -> float:
            idf = float(self._okapi.idf.get(term, self._unseen))
            return idf * counts[term] * (k1 + 1) / (counts[term] + norm)

        return sum(map(term_score, query))


def terms(text: str) -> list[str]:
    """Return the words in lower case, not stemmed."""
    return [text[start:end].lower() for start, end in words(text).tolist()]
