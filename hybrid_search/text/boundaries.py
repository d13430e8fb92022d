"""Probabilities of clause boundaries between words, from token vectors and punctuation.

Transcripts of recognised speech often lack punctuation. But the encoder has read the whole turn, so
the vectors of the tokens around a gap between words show whether a clause ends there. A small
network predicts this from the two vectors, once, when the text is indexed. One byte per word is
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.errors import ModelError
from hybrid_search.text import spans
from hybrid_search.text.clause_marks import ENDS, JOINS, classify_gaps
from hybrid_search.text.types import Bytes, Floats, Ints, PassageTokens, WordCodes

LEAST = np.float32(1 / 255)
"""The least probability of a gap not within a token. It is stored as 1; 0 bars span ends."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryModel:
    """A network with one hidden layer, for vectors of one dimension.

    The probability is ``sigmoid(relu([a, b] @ hidden + hidden_bias) @ output + output_bias)``,
    where a is the vector of the last token before a gap and b the vector of the first token after
    it.

    Attributes:
        hidden: float32 ``[2 * dimension, units]``.
        hidden_bias: float32 ``[units]``.
        output: float32 ``[units]``.
        output_bias: A number.
        unmarked: The factor, 0 to 1, for the probability of a gap without a mark in a text that has
            marks elsewhere.
    """

    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: float
    unmarked: float = 1.0

    @property
    def dimension(self) -> int:
        """The dimension of the input vectors."""
        return len(self.hidden) // 2


def boundary_probabilities(tokens: PassageTokens, model: BoundaryModel, text: str = "") -> Floats:
    """Return the probability of a clause boundary in each gap, float32 ``[words + 1]``.

    Gap i lies before word i, the last gap after the last word. The probability is 1 where a turn
    starts or ends.

    Args:
        tokens: The tokens of a passage.
        model: A model for vectors of this dimension.
        text: The passage's text. If it has punctuation, the probability of a gap is 1 at a mark and
            0 within a token; elsewhere it is multiplied by the model's `unmarked`, but is at least
            `LEAST`.
    """
    probabilities = np.ones(len(tokens.words) + 1, dtype=np.float32)
    if len(tokens.words) < 2:
        return probabilities
    inner = _predict(tokens, model)
    if text:
        inner = _mark_gaps(inner, text, tokens.words[:, :2], model.unmarked)
    inner[tokens.counts[:-1] == 1] = 1.0  # spans do not cross turns: a last word has a single one
    probabilities[1:-1] = inner
    return probabilities


def encode_boundaries(tokens: PassageTokens, model: BoundaryModel, text: str) -> Bytes:
    """Return the `boundaries` of `WordCodes` for the tokens of a passage and its text."""
    probabilities = boundary_probabilities(tokens, model, text)
    return np.rint(255 * probabilities[:-1]).astype(np.uint8)


def join_probabilities(passages: Sequence[WordCodes]) -> Floats:
    """Return the boundary probability before each word of several passages, float32 ``[words]``.

    Reads what `encode_boundaries` gave.

    Raises:
        ModelError: If the codes of a passage have no boundaries.
    """
    stored = [codes.boundaries for codes in passages if codes.boundaries is not None]
    if len(stored) < len(passages):
        raise ModelError(
            "the index was written before its model had a prior of spans, and has no boundaries of "
            "clauses: query with spans_by='cosine', or ingest again into a new index"
        )
    if not stored:
        return np.zeros(0, np.float32)
    return np.concatenate(stored, dtype=np.float32) / np.float32(255)


def _predict(tokens: PassageTokens, model: BoundaryModel) -> Floats:
    """Return the model's prediction for each gap between words, float32 ``[words - 1]``.

    A word without a token is represented by the nearest token.
    """
    vectors = tokens.vectors
    if not len(vectors):
        return np.ones(len(tokens.words) - 1, dtype=np.float32)
    before = np.clip(tokens.words[:-1, 3] - 1, 0, len(vectors) - 1)
    after = np.clip(tokens.words[1:, 2], 0, len(vectors) - 1)
    # each token is multiplied once, whereas that of a one-token word stands around two gaps
    units = spans.multiply(vectors, model.hidden[: model.dimension])[before]
    units += spans.multiply(vectors, model.hidden[model.dimension :])[after]
    units += model.hidden_bias
    logits = np.maximum(units, 0.0) @ model.output + model.output_bias
    probabilities: Floats = (1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))).astype(np.float32)
    return probabilities


def _mark_gaps(probabilities: Floats, text: str, words: Ints, unmarked: float) -> Floats:
    """Return the probabilities of the gaps, adjusted by the punctuation of `text`."""
    kinds = np.fromiter(classify_gaps(text, words.tolist()), dtype=np.int8)
    has_mark = kinds == ENDS
    rest = probabilities * np.float32(unmarked) if has_mark.any() else probabilities
    rest = np.maximum(rest, LEAST)
    return np.where(has_mark, np.float32(1.0), np.where(kinds == JOINS, np.float32(0.0), rest))
