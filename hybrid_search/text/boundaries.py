"""Tell how likely a clause ends between two words, from their token vectors and the punctuation.

Speech that was recognised by a machine often has no punctuation. But the encoder has read the
whole turn, and where one clause ends and another begins shows in the vectors of the tokens around
the gap: a small network on these two vectors reads it from them, once, when the text is indexed. A
byte for each word is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import ModelError
from hybrid_search.text import spans, token_codes
from hybrid_search.text.clause_marks import ENDS, JOINS, classify_gaps
from hybrid_search.text.types import Bytes, Floats, Ints, TokenCodes

Flags = NDArray[np.bool_]

LEAST = np.float32(1 / 255)
"""The least probability of a gap that is not within a token: it is stored as 1, and 0 bars ends."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryModel:
    """A network with one hidden layer, for the vectors of one dimension.

    The probability is ``sigmoid(relu([a, b] @ hidden + hidden_bias) @ output + output_bias)``,
    where a is the vector of the last token before a gap and b that of the first one after it.

    Attributes:
        hidden: float32 ``[2 * dimension, units]``.
        hidden_bias: float32 ``[units]``.
        output: float32 ``[units]``.
        output_bias: A number.
        unmarked: What is left of the probability of a gap without a mark, in a text that has marks
            elsewhere, from 0 to 1.
    """

    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: float
    unmarked: float = 1.0

    @property
    def dimension(self) -> int:
        """The dimension of the vectors that it reads."""
        return len(self.hidden) // 2


def boundary_probabilities(tokens: TokenCodes, model: BoundaryModel, text: str = "") -> Floats:
    """Return the probability of a clause boundary in each gap, float32 ``[words + 1]``.

    Gap i lies before word i, the last gap after the last word. Where a turn begins or ends it is 1.

    Args:
        tokens: The token codes of a passage.
        model: A model for vectors of this dimension.
        text: The passage's text. If it has punctuation, the probability of a gap is 1 at a mark,
            0 within a token, and the model's `unmarked` share of itself elsewhere, but at least
            `LEAST`.
    """
    probabilities = np.ones(len(tokens.words) + 1, dtype=np.float32)
    if len(tokens.words) < 2:
        return probabilities
    inner = _predict(tokens, model)
    if text:
        inner = _mark_gaps(inner, text, tokens.words[:, :2], model.unmarked)
    inner[_ends_turn(tokens.counts[:-1])] = 1.0
    probabilities[1:-1] = inner
    return probabilities


def add_boundaries(tokens: TokenCodes, model: BoundaryModel, text: str) -> TokenCodes:
    """Return the codes of a passage with this text, and with the boundaries in it."""
    probabilities = boundary_probabilities(tokens, model, text)
    return replace(tokens, boundaries=np.rint(255 * probabilities[:-1]).astype(np.uint8))


def read_probabilities(tokens: TokenCodes) -> Floats:
    """Return the probability of a boundary in each gap, float32 ``[words + 1]``.

    It is what `add_boundaries` stored; codes without boundaries are a ModelError.
    """
    return np.append(join_probabilities([tokens]), np.float32(1))


def join_probabilities(token_codes: Sequence[TokenCodes]) -> Floats:
    """Return the probability of a boundary before each word of some passages, float32 ``[words]``.

    They are those of `read_probabilities`, read all at once.

    Raises:
        ModelError: If the codes of a passage have no boundaries.
    """
    stored = [codes.boundaries for codes in token_codes if codes.boundaries is not None]
    if len(stored) < len(token_codes):
        raise ModelError(
            "the index was written before its model had a prior of spans, and has no boundaries of "
            "clauses: query with spans_by='cosine', or ingest again into a new index"
        )
    if not stored:
        return np.zeros(0, np.float32)
    return np.concatenate(stored, dtype=np.float32) / np.float32(255)


def find_marks(text: str, words: Ints) -> Flags:
    """Return which gaps between words have a mark that ends a clause, bool ``[words - 1]``.

    Args:
        text: A text.
        words: Start and end of each of its words, int32 ``[words, 2]``.
    """
    marks: Flags = _find_gaps(text, words) == ENDS
    return marks


def _find_gaps(text: str, words: Ints) -> NDArray[np.int8]:
    return np.fromiter(classify_gaps(text, words.tolist()), dtype=np.int8)


def gap_vectors(tokens: TokenCodes) -> Floats:
    """Return the vectors around each gap between words, float32 ``[words - 1, 2 * dimension]``.

    A row is the vector of the last token before the gap, then that of the first one after it. A
    word that has no token is represented by the nearest token; without any the vectors are 0.
    """
    vectors = token_codes.vectors(tokens)
    if not len(vectors):
        return np.zeros((len(tokens.words) - 1, 2 * vectors.shape[1]), dtype=np.float32)
    before, after = _gap_tokens(tokens)
    return np.concatenate([vectors[before], vectors[after]], axis=1)


def _gap_tokens(tokens: TokenCodes) -> tuple[Ints, Ints]:
    """Return the last token before each gap between words and the first one after it."""
    last_token = len(tokens.codes) - 1
    before = np.clip(tokens.words[:-1, 3] - 1, 0, last_token)
    return before, np.clip(tokens.words[1:, 2], 0, last_token)


def _predict(tokens: TokenCodes, model: BoundaryModel) -> Floats:
    """Return what the model says of the gaps between words, float32 ``[words - 1]``.

    Each token is multiplied once, whereas a word of one token stands in two rows of `gap_vectors`.
    """
    if not len(tokens.codes):
        return np.ones(len(tokens.words) - 1, dtype=np.float32)
    vectors = token_codes.vectors(tokens)
    before, after = _gap_tokens(tokens)
    units = multiply(vectors, model.hidden[: model.dimension])[before]
    units += multiply(vectors, model.hidden[model.dimension :])[after]
    units += model.hidden_bias
    logits = np.maximum(units, 0.0) @ model.output + model.output_bias
    probabilities: Floats = (1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))).astype(np.float32)
    return probabilities


def multiply(vectors: Floats, weights: Floats) -> Floats:
    """Return ``vectors @ weights``, so many rows at a time that BLAS uses one thread.

    Beside an encoder that uses all cores, two threads wait for each other 30 times as long.
    """
    product = np.empty((len(vectors), weights.shape[1]), dtype=np.float32)
    step = max(1, spans.SINGLE_THREAD_PRODUCTS // weights.size)
    for start in range(0, len(vectors), step):
        np.dot(vectors[start : start + step], weights, out=product[start : start + step])
    return product


def _mark_gaps(probabilities: Floats, text: str, words: Ints, unmarked: float) -> Floats:
    """Return the probabilities of the gaps with what the punctuation of `text` says of them."""
    kinds = _find_gaps(text, words)
    has_mark = kinds == ENDS
    rest = probabilities * np.float32(unmarked) if has_mark.any() else probabilities
    rest = np.maximum(rest, LEAST)
    return np.where(has_mark, np.float32(1.0), np.where(kinds == JOINS, np.float32(0.0), rest))


def _ends_turn(counts: Bytes) -> Flags:
    """Return which words are the last of their turn: those with a single span.

    Spans do not cross turns, so only the span of the word itself starts there.
    """
    return np.asarray(counts == 1)
