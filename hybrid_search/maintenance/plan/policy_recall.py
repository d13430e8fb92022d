"""Compare span policies on a sample: vectors a word, and recall against an exhaustive search.

The windows are searched by brute force, so that no error of a graph is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.config import DEFAULT_GRAPH_DIMENSION, DEFAULT_POLICY
from hybrid_search.encoder.base import Encoder
from hybrid_search.maintenance.plan.sample import DocumentPassage, Sample
from hybrid_search.search import phrase_vector
from hybrid_search.text import window_policy, word_codes
from hybrid_search.text.types import Floats, WordCodes

POLICIES = ("20/1", "12/1", "6/1", DEFAULT_POLICY, "4/1", "3/1")
"""The policies that are compared, from few vectors to many."""

PASSAGES = 1000
"""Passages that are searched at most: so many take some seconds for each policy."""

PHRASES = 40
WORDS = (3, 5, 2, 8, 4)
"""Number of phrases that are drawn from the sample, and how many words they have, in turn."""

DEPTH = 10
TIE = 4e-3
"""Cosines that differ by less count as equal.

Stored norms are rounded to half a step of 250 of the sum of their words' lengths, which is all of
it if a norm is half of the sum; and transcripts repeat themselves.
"""

SHARE = 0.025
"""Share of the passages that a query would score exactly; at least twice `DEPTH`, at most 100."""


@dataclass(frozen=True, slots=True)
class Recall:
    """How many vectors a span policy takes, and what it finds of an exhaustive search.

    Attributes:
        policy: The span policy.
        vectors_a_word: Covering spans per word.
        recall: Share of the ten best passages that are among the policy's own ten best.
        scored: Share of them that are among its `window` best, which a query scores exactly.
        window: Number of passages that a query would score exactly.
    """

    policy: str
    vectors_a_word: float
    recall: float
    scored: float
    window: int


def compare(encoder: Encoder, sample: Sample, policies: Sequence[str] = POLICIES) -> list[Recall]:
    """Return the recall of each policy on the first passages of a sample."""
    numbers = [
        number for number, passage_codes in enumerate(sample.codes) if len(passage_codes.norms)
    ][:PASSAGES]
    codes = [sample.codes[number] for number in numbers]
    queries = np.array(
        [
            phrase_vector.query_vector(encoder, text)
            for text in draw_phrases([sample.passages[number] for number in numbers])
        ]
    )
    exact = np.array([exhaustive_cosines(passage_codes, queries) for passage_codes in codes])
    words = sum(int((passage_codes.counts > 0).sum()) for passage_codes in codes)
    return [_measure_policy(policy, codes, queries, exact, words) for policy in policies]


def draw_phrases(document_passages: Sequence[DocumentPassage]) -> list[str]:
    """Return phrases of a few words each, from passages spread evenly over the sample."""
    phrases = []
    step = max(1, len(document_passages) // PHRASES)
    for number, (document, passage) in enumerate(document_passages[::step][:PHRASES]):
        part = max(passage.parts, key=lambda passage_part: len(passage_part.words))
        length = WORDS[number % len(WORDS)]
        first = len(part.words) // 2 - min(len(part.words), length) // 2
        phrase_words = part.words[first : first + length]
        phrases.append(document.text[int(phrase_words[0, 0]) : int(phrase_words[-1, 1])])
    return phrases


def exhaustive_cosines(codes: WordCodes, queries: Floats) -> Floats:
    """Return the best cosine of any span of a passage with each query, float32 ``[queries]``.

    `queries` are float32 ``[queries, dimension]``.
    """
    best: Floats = word_codes.cosines_with_many(queries, codes).max(axis=0)
    return best


def _measure_policy(
    policy: str, codes: Sequence[WordCodes], queries: Floats, exact: Floats, words: int
) -> Recall:
    """Return the recall of one policy; `exact` is float32 ``[passages, queries]``."""
    vectors = [
        window_policy.window_vectors(passage_codes, policy, DEFAULT_GRAPH_DIMENSION)
        for passage_codes in codes
    ]
    cut = queries[:, :DEFAULT_GRAPH_DIMENSION]
    ranking = np.argsort(
        -np.array([(passage_vectors @ cut.T).max(axis=0) for passage_vectors in vectors]),
        axis=0,
        kind="stable",
    )
    depth, window = min(DEPTH, len(codes)), min(100, max(2 * DEPTH, round(SHARE * len(codes))))
    reached = np.take_along_axis(exact >= np.sort(exact, axis=0)[-depth] - TIE, ranking, axis=0)
    recall, scored = (
        float(np.minimum(reached[:most].sum(axis=0), depth).mean()) / depth
        for most in (depth, window)
    )
    return Recall(
        policy, round(sum(map(len, vectors)) / words, 3), round(recall, 3), round(scored, 3), window
    )
