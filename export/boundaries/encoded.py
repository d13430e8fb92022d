"""Texts encoded once, whose token vectors are cut to any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.encoder import Encoder
from hybrid_search.text import passages
from hybrid_search.text.types import Document, Encoding, Floats, Passage, PassageTokens, Turn
from hybrid_search.text.word_codes import gather

BATCH = 256
"""Texts encoded together. An int8 vector depends a little on it, so it is not an option."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """A text that is one passage, with its token vectors in full."""

    text: str
    passage: Passage
    encoding: Encoding

    def cut(self, dimension: int) -> PassageTokens:
        """Return its tokens, with vectors cut to the first `dimension` numbers."""
        cut = Encoding(self.encoding.vectors[:, :dimension], self.encoding.offsets)
        return gather(self.passage, [cut], dimension)


def encode_texts(
    encoder: Encoder, texts: Sequence[str], progress: Progress = lambda _: None
) -> list[EncodedText]:
    """Return the encoded texts, in order.

    Args:
        encoder: The encoder, with vectors in full.
        texts: Texts of 1 to `passages.WINDOW_WORDS` words, so that each is one passage.
        progress: Is told how many texts are encoded.
    """
    encoded = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encodings = encoder.encode(batch)
        encoded += [
            EncodedText(text, _make_passage(text), encoding)
            for text, encoding in zip(batch, encodings, strict=True)
        ]
        progress(f"{len(encoded):,} of {len(texts):,} texts encoded")
    return encoded


def _make_passage(text: str) -> Passage:
    (passage,) = passages.split(Document("", text, (Turn(text),)))
    return passage


def encode_alone(
    encoder: Encoder, texts: Sequence[str], progress: Progress = lambda _: None
) -> dict[str, Floats]:
    """Return the unit vector of each text by itself, float32 ``[dimension]``."""
    distinct = list(dict.fromkeys(texts))
    vectors = {}
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        for text, encoding in zip(batch, encoder.encode(batch), strict=True):
            vectors[text] = unit(encoding.vectors.sum(axis=0))
        progress(f"{len(vectors):,} of {len(distinct):,} clauses encoded")
    return vectors


def unit(vector: Floats) -> Floats:
    """Return a vector divided by its length; a vector of zeros stays."""
    length: Floats = np.maximum(np.linalg.norm(vector), np.float32(1e-12))
    return vector / length
