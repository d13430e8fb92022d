"""How well the ends and the length of each span fit those of what people mark.

People mark clauses. Where the cosine alone decides, the best span is short and literal: the word
"hold" for "waiting on hold". With p the probability of a clause boundary in each gap between words,
the prior of the n words i..j is ::

    ends * (p[i] + p[j + 1]) - inside * (p[i + 1] + ... + p[j]) + length * ln(n)

An end within a token, as behind the 10 of "10:30", costs `WITHIN_TOKEN` more; p is 0 there alone.
The sum over the inner gaps is a difference of running sums. So the prior of all spans costs as much
as their cosines, and the search stays exact. A passage's score is that of its best span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.text import spans
from hybrid_search.text.boundaries import BoundaryModel, join_probabilities, read_probabilities
from hybrid_search.text.joined_codes import split_spans
from hybrid_search.text.token_codes import JOIN_PASSAGES
from hybrid_search.text.types import Bytes, Floats, TokenCodes

LOGARITHMS = np.log(np.arange(1, spans.MAX_WORDS + 1))
"""The natural logarithm of each number of words."""

WITHIN_TOKEN = 0.5
"""What an end within a token costs, in units of cosine: more than a word fewer can gain."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanPrior:
    """The boundary model and the weights of a prior, in units of cosine.

    Attributes:
        boundaries: Gives the probability of a clause boundary in each gap.
        ends: What a certain boundary at an end of a span is worth.
        inside: What a certain boundary inside a span costs.
        length: What a span gains by having e times as many words.
    """

    boundaries: BoundaryModel
    ends: float
    inside: float
    length: float

    def score_spans(self, tokens: TokenCodes) -> Floats:
        """Return the prior of every span of a passage, float32 ``[spans]``."""
        return self.combine(read_probabilities(tokens), tokens.counts)

    def score_passages(self, token_codes: Sequence[TokenCodes]) -> Iterator[Floats]:
        """Yield the prior of every span of each passage, see `score_spans`.

        Some passages are scored together, which pays numpy's cost per call once. The codes must be
        sound.
        """
        for start in range(0, len(token_codes), JOIN_PASSAGES):
            block = token_codes[start : start + JOIN_PASSAGES]
            probabilities = np.append(join_probabilities(block), np.float32(1))
            priors = self.combine(probabilities, np.concatenate([codes.counts for codes in block]))
            yield from split_spans(priors, [len(codes.inverse_norms) for codes in block])

    def combine(self, probabilities: Floats, counts: Bytes) -> Floats:
        """Return the prior of every span, float32 ``[spans]``.

        Args:
            probabilities: Of a boundary in each gap, float32 ``[words + 1]``.
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
