"""An encoder whose word vectors are given by the test, so that cosines can be computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.text.types import Encoding
from hybrid_search.text.words import words

Vector = tuple[float, float, float]

OTHER: Vector = (0.0, 0.0, 1.0)
"""The vector of a word that is not in the table."""


class TableEncoder:
    """Gives each word one token of three numbers; words that are not in `table` are `OTHER`.

    In a text of more than `crowd` words every token has `OTHER` added, as the context changes the
    tokens of a real encoder.
    """

    info = EncoderInfo("spelled", "spelled-fingerprint", 3, "float32", "turn")

    def __init__(self, table: Mapping[str, Vector], crowd: int = 1_000_000) -> None:
        self._table, self._crowd = table, crowd

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [self._encode_text(text) for text in texts]

    def _encode_text(self, text: str) -> Encoding:
        offsets = words(text)
        spellings = [text[start:end].lower() for start, end in offsets.tolist()]
        vectors = [self._table.get(spelling, OTHER) for spelling in spellings]
        context_shift = np.array(OTHER if len(offsets) > self._crowd else (0.0, 0.0, 0.0))
        shifted = np.array(vectors).reshape(-1, 3) + context_shift
        return Encoding(shifted.astype(np.float32), offsets)
