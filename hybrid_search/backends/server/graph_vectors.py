"""Writes the vectors of covering windows as a server's graph takes them, and that of a query.

They only find passages, whose scores come from the word codes: so fewer numbers, or bytes, do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hybrid_search.text import spans
from hybrid_search.text.types import Codes, Floats, WordCodes
from hybrid_search.text.window_policy import window_vectors

DECIMALS = 5
"""Decimal places of a number that is no byte: a third of the characters of all digits."""

LARGEST = 127
"""The largest number of a byte vector; -128 is not used, so that both signs are alike."""


@dataclass(frozen=True, slots=True)
class GraphVectors:
    """How the vectors in the graphs of an index are written: the first numbers of the model's.

    Where they `are_bytes` these are integers from -127 to 127.
    """

    dimension: int
    are_bytes: bool = False

    @classmethod
    def from_mapping(cls, vector: Mapping[str, Any], dimension: int) -> Self:
        """Return what the mapping of the field says; a model has vectors of `dimension` numbers."""
        # OpenSearch has `dimension` and `data_type`, which it answers in capitals
        count = vector.get("dimension", vector.get("dims"))
        number_type = str(vector.get("data_type", vector.get("element_type"))).lower()
        is_count = isinstance(count, int) and 0 < count <= dimension
        return cls(count if is_count else dimension, number_type == "byte")

    def encode_windows(self, tokens: WordCodes, policy: str) -> Floats | Codes:
        """Return the vectors of a passage's covering windows in order; zeros without tokens."""
        vectors = window_vectors(tokens, policy, self.dimension)
        return to_bytes(vectors) if self.are_bytes else np.round(vectors, DECIMALS)

    def encode_query(self, vector: Floats) -> list[float]:
        """Return the vector of a query, float32 ``[numbers of the model]``, for JSON."""
        first_numbers = spans.scale_to_unit(vector[: self.dimension])
        if self.are_bytes:
            byte_numbers: list[float] = to_bytes(first_numbers).tolist()
            return byte_numbers
        return round_vector(first_numbers)


def to_bytes(vectors: Floats) -> Codes:
    """Return vectors as int8, each by a scale of its own, which a cosine does not depend on."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    codes: Codes = np.rint(vectors * (LARGEST * spans.inverse(largest))).astype(np.int8)
    return codes


def round_vector(vector: Floats) -> list[float]:
    """Return the vector of a query for JSON, rounded to `DECIMALS` places."""
    numbers: list[float] = np.round(vector.astype(np.float64), DECIMALS).tolist()
    return numbers
