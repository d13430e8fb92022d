"""BM25 as Lucene, tantivy and the in-memory store compute it, of texts that are not in an index."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from hybrid_search.backends.memory import K1, B, round_length
from hybrid_search.search.types import Scores
from hybrid_search.text.stems import count_stems, count_text_stems


def compute_idf(total: int, count: int) -> float:
    """Return the weight of a term that `count` of `total` texts contain."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def score(texts: Sequence[str], queries: Sequence[str]) -> list[Scores]:
    """Return the scores of all texts for each query, on the scale of calibrations."""
    postings: dict[str, Counter[int]] = defaultdict(Counter)
    lengths = np.zeros(len(texts))
    for number, text in enumerate(texts):
        for stem, count in count_text_stems(text).items():
            postings[stem][number] = count
            lengths[number] += count
    rounded = np.array([round_length(int(length)) for length in lengths])
    norms = K1 * (1 - B + B * rounded / max(float(lengths.mean()), 1e-12))
    scores_by_query = []
    for query in queries:
        scores = np.zeros(len(texts))
        for stem, repeated in count_stems(query).items():
            found = postings.get(stem, Counter())
            rows = np.fromiter(found, np.intp, len(found))
            counts = np.fromiter(found.values(), np.float64, len(found))
            idf = compute_idf(len(texts), len(found))
            scores[rows] += repeated * idf * counts / (counts + norms[rows])
        scores_by_query.append(scores)
    return scores_by_query
