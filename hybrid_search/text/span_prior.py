"""A prior for spans: how well their ends and length fit the spans that people mark.

People mark clauses. By cosine alone, the best span is short and literal: the word "hold" for
"waiting on hold". With p the probability of a clause boundary in each gap between words, the prior
of the n words i..j is ::

    ends * (p[i] + p[j + 1]) - inside * (p[i + 1] + ... + p[j]) + length * ln(n)

An end within a token, such as after the 10 of "10:30", costs `WITHIN_TOKEN` more; p is 0 only
there. The sum over the inner gaps is a difference of running sums, so the prior of all spans costs
as much as their cosines, and the search stays exact. The score of a passage is the score of its
best span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.text import spans
from hybrid_search.text.boundaries import BoundaryModel, join_probabilities
from hybrid_search.text.joined_words import split_spans
from hybrid_search.text.types import Bytes, Floats, WordCodes
from hybrid_search.text.word_codes import JOIN_PASSAGES

LOGARITHMS = np.log(np.arange(1, spans.MAX_WORDS + 1))
"""The natural logarithm of each number of words."""

WITHIN_TOKEN = 0.5
"""The cost of an end within a token, in units of cosine: more than dropping a word can gain."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanPrior:
    """The boundary model and the weights of a prior, in units of cosine.

    Attributes:
        boundaries: The model that predicts the probability of a clause boundary in each gap.
        ends: The gain for a certain boundary at an end of a span.
        inside: The cost of a certain boundary inside a span.
        length: The gain for multiplying the number of words by e.
    """

    boundaries: BoundaryModel
    ends: float
    inside: float
    length: float

    def score_spans(self, tokens: WordCodes) -> Floats:
        """Return the prior of every span of a passage, float32 ``[spans]``."""
        (priors,) = self.score_passages([tokens])
        return priors

    def score_passages(self, passages: Sequence[WordCodes]) -> Iterator[Floats]:
        """Yield the prior of every span of each passage, see `score_spans`.

        Passages are scored in batches, to pay numpy's cost per call once. The codes must be
        undamaged.
        """
        for start in range(0, len(passages), JOIN_PASSAGES):
            block = passages[start : start + JOIN_PASSAGES]
            probabilities = np.append(join_probabilities(block), np.float32(1))
            priors = self.combine(probabilities, np.concatenate([codes.counts for codes in block]))
            yield from split_spans(priors, [len(codes.norms) for codes in block])

    def combine(self, probabilities: Floats, counts: Bytes) -> Floats:
        """Return the prior of every span, float32 ``[spans]``.

        Args:
            probabilities: The probability of a boundary in each gap, float32 ``[words + 1]``.
            counts: The number of spans that start at each word, uint8 ``[words]``.
        """
        running = np.cumsum(probabilities, dtype=np.float64)[:-1]
        of_ends = self.ends * probabilities - WITHIN_TOKEN * (probabilities == 0)
        of_first = of_ends[:-1] + self.inside * running
        of_last = of_ends[1:] - self.inside * running
        first, last = spans.bounds(counts)
        priors = of_last[last]
        priors += np.repeat(of_first, counts)
        last -= first
        priors += (self.length * LOGARITHMS)[last]
        scores: Floats = priors.astype(np.float32)
        return scores
