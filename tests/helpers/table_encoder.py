"""An encoder whose words have the vectors that a test gives them, so that cosines can be worked out
by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.text.types import Encoding
from hybrid_search.text.words import words

Vector = tuple[float, float, float]

OTHER: Vector = (0.0, 0.0, 1.0)


class SpelledEncoder:
    """One token a word, of three numbers; words that are not in `table` are `OTHER`. In a text of
    more than `crowd` words every token has `OTHER` added, as neighbours do to the tokens of a real
    encoder.
    """

    info = EncoderInfo("spelled", "spelled-fingerprint", 3, "float32", "turn")

    def __init__(self, table: Mapping[str, Vector], crowd: int = 1_000_000) -> None:
        self._table, self._crowd = table, crowd

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [self._encode_text(text) for text in texts]

    def _encode_text(self, text: str) -> Encoding:
        offsets = words(text)
        vectors = [
            self._table.get(text[start:end].lower(), OTHER) for start, end in offsets.tolist()
        ]
        context_shift = np.array(OTHER if len(offsets) > self._crowd else (0.0, 0.0, 0.0))
        return Encoding(
            (np.array(vectors).reshape(-1, 3) + context_shift).astype(np.float32), offsets
        )
