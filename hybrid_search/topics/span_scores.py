"""Score every span of some passages against the phrases of all topics, exactly.

The cosines of all spans of n words with some phrases are a difference of two rows of running sums,
times the inverse norms (`hybrid_search.text.spans` has the mathematics). They are computed for one
n after the other and compared with the topics' limits at once, so that of hundreds of millions of
cosines only the large ones are ever stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybrid_search.text import spans, word_vectors
from hybrid_search.text.codebook import turn
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats
from hybrid_search.topics.blocks import JoinedPassages, join_passages
from hybrid_search.topics.topic_matrix import TopicMatrix
from hybrid_search.topics.types import Candidates, Integers, ScannedBlock

TILE_COLUMNS = 32
"""Phrases that are scored together: the numbers of 64 passages then stay in a core's cache."""

WordSums = tuple[Floats, Floats]
"""Running sums before and after each word, each float32 ``[words, phrases]``."""


Near = tuple[Integers, Integers, Floats]
"""The pairs of span and column whose score reaches the limit, and their cosines, each ``[n]``."""


def find_candidates(
    block: ScannedBlock, matrix: TopicMatrix, prior: SpanPrior | None
) -> tuple[Candidates, int]:
    """Return the spans of a block that are near enough to a topic, exactly.

    A span is judged by the phrase of the topic that is nearest, which may be a phrase under `not`.
    The second is the number of passages that were left out: their codes are damaged.
    """
    joined, damaged = join_passages(block, matrix.vectors.shape[1], prior)
    if joined is None:
        return Candidates.empty(), damaged
    near = _choose_nearest_phrases(_find_near_spans(joined, matrix), matrix)
    return _build_candidates(block, joined, matrix, near), damaged


def _find_near_spans(joined: JoinedPassages, matrix: TopicMatrix) -> Near:
    """Return the pairs of span and phrase whose score is one that is looked at."""
    vectors = word_vectors.decode_turned(joined.tokens)
    limits = matrix.scanned_limits[matrix.owners]
    none = np.zeros(0, dtype=np.int64)
    parts: list[Near] = [(none, none, np.zeros(0, dtype=np.float32))]
    for start in range(0, len(matrix.phrases), TILE_COLUMNS):
        tile = slice(start, start + TILE_COLUMNS)
        sums = _sum_products(joined, vectors, matrix.vectors[tile])
        for numbers, columns, cosines in _compare(joined, sums, limits[tile]):
            parts.append((numbers, columns + start, cosines))
    numbers, columns, cosines = map(np.concatenate, zip(*parts, strict=True))
    return numbers, columns, cosines


def _sum_products(joined: JoinedPassages, vectors: Floats, phrases: Floats) -> WordSums:
    """Return the running sums of the products with some phrases, before and after each word.

    `vectors` are the turned vectors of all rows, float32 ``[rows, dimension]``. Sums are counted
    from the first word of each passage, in float64 until then: float32 would lose digits over many
    passages, and the difference of two sums is what counts.
    """
    products = spans.multiply(vectors, np.ascontiguousarray(turn(phrases).T))
    running = np.zeros((len(products) + 1, products.shape[1]))
    np.cumsum(products, axis=0, out=running[1:])
    changes = np.flatnonzero(np.diff(joined.owners, prepend=-1))
    passage_of_word = np.cumsum(np.diff(joined.owners, prepend=-1) != 0) - 1
    rows = joined.tokens.rows
    bases = running[rows[changes]][passage_of_word]
    before, after = running[rows] - bases, running[rows + 1] - bases
    return before.astype(np.float32), after.astype(np.float32)


def _compare(joined: JoinedPassages, sums: WordSums, limits: Floats) -> Iterator[Near]:
    """Yield the near spans of each number of words, with columns counted from the first phrase."""
    before, after = sums
    counts, inverse_norms = joined.tokens.counts, word_vectors.inverse_norms(joined.tokens)
    first_spans = np.cumsum(counts, dtype=np.int64) - counts
    for length in range(1, spans.MAX_WORDS + 1):
        words = np.flatnonzero(counts >= length)
        if not len(words):
            return
        numbers = first_spans[words] + (length - 1)
        cosines = after[words + (length - 1)]
        cosines -= before[words]
        cosines *= inverse_norms[numbers, None]
        np.clip(cosines, -1.0, 1.0, out=cosines)
        scores = cosines if joined.priors is None else cosines + joined.priors[numbers, None]
        rows, columns = np.nonzero(scores >= limits)
        yield numbers[rows], columns, cosines[rows, columns]


def _choose_nearest_phrases(near: Near, matrix: TopicMatrix) -> Near:
    """Return one pair for each span and topic: that with the largest cosine.

    Of equal ones a phrase that is meant wins, then the first.
    """
    numbers, columns, cosines = near
    topics = matrix.owners[columns]
    order = np.lexsort((columns, ~matrix.is_meant[columns], -cosines, numbers, topics))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (np.diff(numbers[order]) != 0) | (np.diff(topics[order]) != 0)
    chosen = order[is_first]
    return numbers[chosen], columns[chosen], cosines[chosen]


def _build_candidates(
    block: ScannedBlock, joined: JoinedPassages, matrix: TopicMatrix, near: Near
) -> Candidates:
    numbers, columns, cosines = near
    first, last = (words[numbers] for words in spans.bounds(joined.tokens.counts))
    owners = joined.owners[first]
    documents, passages = block.documents[owners], block.first_passage + owners
    scores = cosines if joined.priors is None else cosines + joined.priors[numbers]
    return Candidates(
        documents,
        passages,
        matrix.owners[columns],
        columns,
        cosines,
        scores,
        joined.starts[first],
        joined.ends[last],
        joined.clause_starts[first],
        joined.clause_ends[last],
    )
