"""Span policies on a sample: vectors a word, and what of an exhaustive search they find. By brute force, so that no graph is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search import covering, phrase, spans
from hybrid_search.covering import DEFAULT_POLICY
from hybrid_search.encoder.base import Encoder
from hybrid_search.planning.sample import Cut, Sample
from hybrid_search.types import Floats, TokenCodes

POLICIES = ("20/1", "12/1", DEFAULT_POLICY, "6/2", "6+12/2", "3/1")
"""From few vectors to many."""

PASSAGES = 1000
"""Passages that are searched, at most: so many take some seconds a policy."""

PHRASES = 40
WORDS = (3, 5, 2, 8, 4)
"""Phrases that are drawn from the sample, of so many words by turns."""

DEPTH = 10
TIE = 1e-3
"""Cosines that differ by less are equal: stored norms are rounded to half of it, and transcripts repeat themselves."""

SHARE = 0.025
"""Of the passages, at least twice `DEPTH` and at most 100: as many as would be scored exactly."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Of a policy: covering spans a word, and the share of the ten best passages of an exhaustive search that are among its own ten best (`recall`),
    and among its `window` best, which would be scored exactly (`scored`)."""

    policy: str
    vectors_a_word: float
    recall: float
    scored: float
    window: int


def compare(encoder: Encoder, sample: Sample, policies: Sequence[str] = POLICIES) -> list[Recall]:
    """Each of `policies` on the first passages of `sample`."""
    chosen = [number for number, each in enumerate(sample.codes) if len(each.inverse_norms)][:PASSAGES]
    codes = [sample.codes[number] for number in chosen]
    queries = np.array([phrase.vector(encoder, each) for each in drawn([sample.cut[number] for number in chosen])])
    exact = np.array([exhaustive(each, queries) for each in codes])
    words = sum(int((each.counts > 0).sum()) for each in codes)
    return [_compared(policy, codes, queries, exact, words) for policy in policies]


def drawn(cut: Sequence[Cut]) -> list[str]:
    """Phrases of some words each, from passages that are evenly spread."""
    found = []
    for number, (document, passage) in enumerate(cut[:: max(1, len(cut) // PHRASES)][:PHRASES]):
        part = max(passage.parts, key=lambda each: len(each.words))
        first = len(part.words) // 2 - min(len(part.words), WORDS[number % len(WORDS)]) // 2
        said = part.words[first : first + WORDS[number % len(WORDS)]]
        found.append(document.text[int(said[0, 0]) : int(said[-1, 1])])
    return found


def exhaustive(coded: TokenCodes, queries: Floats) -> Floats:
    """The best cosine of any span of a passage with each query, float32 ``[queries]``; `queries` float32 ``[queries, dimension]``."""
    sums = spans.running_sums((coded.codes.astype(np.float32) @ queries.T) * coded.scales[:, None])
    first, last = spans.bounds(coded.counts)
    cosines = (sums[coded.words[last, 3]] - sums[coded.words[first, 2]]) * coded.inverse_norms[:, None].astype(np.float32)
    best: Floats = cosines.max(axis=0)
    return best


def _compared(policy: str, codes: Sequence[TokenCodes], queries: Floats, exact: Floats, words: int) -> Recall:
    """`exact` float32 ``[passages, queries]``."""
    vectors = [covering.cover(each, policy) for each in codes]
    own = np.argsort(-np.array([(each @ queries.T).max(axis=0) for each in vectors]), axis=0, kind="stable")
    depth, window = min(DEPTH, len(codes)), min(100, max(2 * DEPTH, round(SHARE * len(codes))))
    reached = np.take_along_axis(exact >= np.sort(exact, axis=0)[-depth] - TIE, own, axis=0)
    recall, scored = (float(np.minimum(reached[:most].sum(axis=0), depth).mean()) / depth for most in (depth, window))
    return Recall(policy, round(sum(map(len, vectors)) / words, 3), round(recall, 3), round(scored, 3), window)
