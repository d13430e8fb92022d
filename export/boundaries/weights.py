"""Fit the weights of the prior, so that the marked spans have the best scores.

Of a text with spans s, ``softmax(temperature * (cosine(s) + prior(s)))`` is a distribution over its
spans. What is maximized is the expected agreement of a span with the mark: the mean over the texts
of a set, then over the sets. It is the word F1; where the fewest words that a person would mark are
known, half of it is whether the span is right (`benchmarks.quality.written`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.quality.written import SLACK
from export.boundaries.encoded import EncodedText, unit
from export.boundaries.marked import MarkedExample
from hybrid_search.text import spans, word_codes
from hybrid_search.text.boundaries import BoundaryModel, boundary_probabilities
from hybrid_search.text.codebook import plain
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats

Doubles = NDArray[np.float64]

FIRST_TEMPERATURE = 15.0
PENALTY = 1e-5
"""Of the squares of the weights, times the temperature: it keeps them finite."""

ROUNDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class EncodedExample:
    """A marked example with its encoding and the vector of its query, in full."""

    example: MarkedExample
    encoded: EncodedText
    query: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SpanTable:
    """The spans of a marked text.

    Attributes:
        terms: float32 ``[spans, 4]``: the cosine, then what the weights ends, inside and length
            are multiplied by.
        agreement: float32 ``[spans]``: how well each agrees with the mark, from 0 to 1.
        word_f1: float32 ``[spans]``: the word F1 alone.
    """

    terms: Floats
    agreement: Floats
    word_f1: Floats


def tabulate_spans(item: EncodedExample, boundaries: BoundaryModel) -> SpanTable:
    """Return the spans of a marked text, as vectors of the boundary model's dimension see them."""
    dimension = boundaries.dimension
    tokens = item.encoded.cut(dimension)
    # the rounding of stored codes is no part of what a person means
    codes = word_codes.pack(tokens, plain(dimension), 8)
    cosines = word_codes.cosines(unit(item.query[:dimension]), codes)
    probabilities = boundary_probabilities(tokens, boundaries, item.encoded.text)
    parts = [
        SpanPrior(boundaries, *weights).combine(probabilities, tokens.counts)
        for weights in np.eye(3).tolist()
    ]
    first, last = spans.bounds(tokens.counts)
    is_whole = (probabilities[first] > 0) & (probabilities[last + 1] > 0)  # no token is cut
    word_f1 = compute_word_f1(first, last + 1, item.example)
    agreement = compute_agreement(first, last + 1, item.example, word_f1)
    terms = np.stack([cosines, *parts], axis=1)
    return SpanTable(terms[is_whole], agreement[is_whole], word_f1[is_whole])


def compute_agreement(
    first: NDArray[np.intp], after: NDArray[np.intp], example: MarkedExample, word_f1: Floats
) -> Floats:
    """Return how well spans agree with the mark, float32 ``[spans]``, see `compute_word_f1`."""
    if example.core is None:
        return word_f1
    core_first, core_after = example.core
    missing = np.maximum(first - core_first, 0) + np.maximum(core_after - after, 0)
    beyond = np.maximum(example.first - first, 0) + np.maximum(after - example.after, 0)
    is_right = (missing <= SLACK) & (beyond <= SLACK)
    agreement: Floats = ((word_f1 + is_right) / 2).astype(np.float32)
    return agreement


def compute_word_f1(
    first: NDArray[np.intp], after: NDArray[np.intp], example: MarkedExample
) -> Floats:
    """Return the word F1 of spans with the mark, float32 ``[spans]``.

    Args:
        first: The number of the first word of each span.
        after: The number of the word behind each span.
        example: The text and its mark.
    """
    shared = np.minimum(after, example.after) - np.maximum(first, example.first)
    total = (after - first) + (example.after - example.first)
    word_f1: Floats = (2 * np.maximum(shared, 0) / total).astype(np.float32)
    return word_f1


Weights = tuple[float, float, float]
"""The worth of ends, inside and length, in units of cosine."""


def fit_weights(sets: Mapping[str, Sequence[SpanTable]]) -> tuple[Weights, float]:
    """Return the weights ends, inside and length, in units of cosine, and the expected agreement.

    Args:
        sets: The tables of each set. All sets count alike.
    """
    objective = Objective([table for tables in sets.values() for table in tables], _share(sets))
    first_guess = np.array([FIRST_TEMPERATURE, 0.0, 0.0, 0.0])
    result = minimize(
        objective.evaluate, first_guess, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}
    )
    temperature, *products = result.x.tolist()
    ends, inside, length = (float(np.float32(product / temperature)) for product in products)
    return (ends, inside, length), -float(result.fun)


def _share(sets: Mapping[str, Sequence[SpanTable]]) -> Doubles:
    """Return the share of each text in the mean over sets, float64 ``[texts]``."""
    lengths = [len(tables) for tables in sets.values() if tables]
    return np.repeat([1 / (len(lengths) * length) for length in lengths], lengths)


class Objective:
    """The negative expected agreement of all texts, and its gradient."""

    def __init__(self, tables: Sequence[SpanTable], shares: Doubles) -> None:
        self._terms = np.concatenate([table.terms for table in tables]).astype(np.float64)
        agreements = [table.agreement for table in tables]
        self._agreement = np.concatenate(agreements).astype(np.float64)
        lengths = [len(agreement) for agreement in agreements]
        self._starts = np.cumsum([0, *lengths[:-1]])
        self._texts = np.repeat(np.arange(len(tables)), lengths)
        self._shares = shares

    def evaluate(self, coefficients: Doubles) -> tuple[float, Doubles]:
        """Return the value and the gradient at the temperature and its products with the weights.

        Args:
            coefficients: float64 ``[4]``.
        """
        shares = self._distribute(self._terms @ coefficients)
        expected = np.add.reduceat(shares * self._agreement, self._starts)
        gains = self._agreement - expected[self._texts]
        slopes = shares * gains * self._shares[self._texts]
        penalty = PENALTY * np.array([0.0, 1.0, 1.0, 1.0])
        value = -float(self._shares @ expected) + float(penalty @ coefficients**2)
        return value, 2 * penalty * coefficients - self._terms.T @ slopes

    def _distribute(self, logits: Doubles) -> Doubles:
        """Return the softmax over the spans of each text, float64 ``[spans]``."""
        logits -= np.maximum.reduceat(logits, self._starts)[self._texts]
        powers = np.exp(logits)
        sums = np.add.reduceat(powers, self._starts)
        shares: Doubles = powers / sums[self._texts]
        return shares


def measure_word_f1(tables: Sequence[SpanTable], weights: Weights = (0.0, 0.0, 0.0)) -> float:
    """Return the mean word F1 of the best spans; without weights, of those with the best cosine."""
    coefficients = np.array([1.0, *weights], dtype=np.float32)
    best = [table.word_f1[np.argmax(table.terms @ coefficients)] for table in tables]
    return float(np.mean(best))
