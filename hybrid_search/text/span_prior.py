"""How well the ends and the length of each span fit those of what people mark.

People mark clauses. Where the cosine alone decides, the best span is short and literal: the word
"hold" for "waiting on hold". With p the probability of a clause boundary in each gap between words,
the prior of the n words i..j is ::

    ends * (p[i] + p[j + 1]) - inside * (p[i + 1] + ... + p[j]) + length * ln(n)

The sum over the inner gaps is a difference of running sums. So the prior of all spans costs as much
as their cosines, and the search stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybrid_search.text import spans
from hybrid_search.text.boundaries import BoundaryModel, boundary_probabilities
from hybrid_search.text.types import Bytes, Floats, TokenCodes


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

    def score_spans(self, tokens: TokenCodes, text: str = "") -> Floats:
        """Return the prior of every span of a passage, float32 ``[spans]``.

        Args:
            tokens: The token codes of the passage, in the dimension of the boundary model.
            text: Its text, for the punctuation; see `boundary_probabilities`.
        """
        probabilities = boundary_probabilities(tokens, self.boundaries, text)
        return self.combine(probabilities, tokens.counts)

    def combine(self, probabilities: Floats, counts: Bytes) -> Floats:
        """Return the prior of every span, float32 ``[spans]``.

        Args:
            probabilities: Of a boundary in each gap, float32 ``[words + 1]``.
            counts: The number of spans that start at each word, uint8 ``[words]``.
        """
        first, last = spans.bounds(counts)
        running = np.cumsum(probabilities, dtype=np.float64)
        at_ends = probabilities[first] + probabilities[last + 1]
        within = running[last] - running[first]
        lengths = np.log(last - first + 1)
        priors: Floats = (
            self.ends * at_ends - self.inside * within + self.length * lengths
        ).astype(np.float32)
        return priors
