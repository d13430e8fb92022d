"""Span policies on a sample: vectors a word, and what of an exhaustive search they find.

By brute force, so that no graph is to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.encoder.base import Encoder
from hybrid_search.maintenance.plan.sample import DocumentPassage, Sample
from hybrid_search.search import phrase_vector
from hybrid_search.text import spans, window_policy
from hybrid_search.text.types import Floats, TokenCodes
from hybrid_search.text.window_policy import DEFAULT_POLICY

POLICIES = ("20/1", "12/1", DEFAULT_POLICY, "6/2", "6+12/2", "3/1")
"""From few vectors to many."""

PASSAGES = 1000
"""Passages that are searched, at most: so many take some seconds a policy."""

PHRASES = 40
WORDS = (3, 5, 2, 8, 4)
"""Phrases that are drawn from the sample, of so many words by turns."""

DEPTH = 10
TIE = 1e-3
"""Cosines that differ by less are equal: stored norms are rounded to half of it, and transcripts
repeat themselves.
"""

SHARE = 0.025
"""Of the passages, at least twice `DEPTH` and at most 100: as many as would be scored exactly."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Of a policy: covering spans a word, and the share of the ten best passages of an exhaustive
    search that are among its own ten best (`recall`), and among its `window` best, which would be
    scored exactly (`scored`).
    """

    policy: str
    vectors_a_word: float
    recall: float
    scored: float
    window: int


def compare(encoder: Encoder, sample: Sample, policies: Sequence[str] = POLICIES) -> list[Recall]:
    """Each of `policies` on the first passages of `sample`."""
    numbers = [
        number
        for number, passage_codes in enumerate(sample.codes)
        if len(passage_codes.inverse_norms)
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
    """Phrases of some words each, from passages that are evenly spread."""
    phrases = []
    for number, (document, passage) in enumerate(
        document_passages[:: max(1, len(document_passages) // PHRASES)][:PHRASES]
    ):
        part = max(passage.parts, key=lambda passage_part: len(passage_part.words))
        first = len(part.words) // 2 - min(len(part.words), WORDS[number % len(WORDS)]) // 2
        phrase_words = part.words[first : first + WORDS[number % len(WORDS)]]
        phrases.append(document.text[int(phrase_words[0, 0]) : int(phrase_words[-1, 1])])
    return phrases


def exhaustive_cosines(token_codes: TokenCodes, queries: Floats) -> Floats:
    """The best cosine of any span of a passage with each query, float32 ``[queries]``; `queries`
    float32 ``[queries, dimension]``.
    """
    sums = spans.running_sums(
        (token_codes.codes.astype(np.float32) @ queries.T) * token_codes.scales[:, None]
    )
    first, last = spans.bounds(token_codes.counts)
    cosines = (
        sums[token_codes.words[last, 3]] - sums[token_codes.words[first, 2]]
    ) * token_codes.inverse_norms[:, None].astype(np.float32)
    best: Floats = cosines.max(axis=0)
    return best


def _measure_policy(
    policy: str, codes: Sequence[TokenCodes], queries: Floats, exact: Floats, words: int
) -> Recall:
    """`exact` float32 ``[passages, queries]``."""
    vectors = [window_policy.window_vectors(passage_codes, policy) for passage_codes in codes]
    ranking = np.argsort(
        -np.array([(passage_vectors @ queries.T).max(axis=0) for passage_vectors in vectors]),
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
