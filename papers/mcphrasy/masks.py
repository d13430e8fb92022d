"""The vector that an encoder gives a mask's token in each context (section 3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.quality.systems import encodings
from benchmarks.quality.vectors import TEXTS
from hybrid_search.encoder import Encoder
from hybrid_search.text.types import Encoding, Floats
from papers.mcphrasy.contexts import Context

MASK = "[MASK]"
"""The mask of BERT, SpanBERT and the shipped model.

All tokenizers tried know it in a text, and its vector is returned: it is the text's own, not one of
the tokens that they put around a text.
"""


class MaskEncoder(Protocol):
    """The frozen model that reads masked sentences: the paper's SpanBERT."""

    @property
    def name(self) -> str:
        """The name of the weights: vectors of one name can be compared."""
        ...

    def vectors(self, contexts: Sequence[Context]) -> Floats:
        """Return the mask's vector in each context, float32 ``[contexts, dimension]``.

        Of any length.
        """
        ...


class Masks:
    """Any `Encoder` as a `MaskEncoder`, if its tokenizer makes one token of `mask`.

    The product's, or `papers.systems.huggingface.HuggingFace`.
    """

    def __init__(self, encoder: Encoder, mask: str = MASK) -> None:
        self.encoder, self.mask = encoder, mask

    @property
    def name(self) -> str:
        """The model's fingerprint; for Hugging Face weights that is their folder."""
        return Path(self.encoder.info.fingerprint).name

    def vectors(self, contexts: Sequence[Context]) -> Floats:
        """Return the masks' vectors; raises SystemExit if the mask is not one token."""
        mask_vectors = np.zeros((len(contexts), self.encoder.info.dimension), dtype=np.float32)
        texts = [context.mask_phrase(self.mask) for context in contexts]
        for row, encoding in enumerate(encodings(self.encoder, texts, TEXTS)):
            mask_vectors[row] = self._mask_vector(encoding, contexts[row].start)
        return mask_vectors

    def _mask_vector(self, encoding: Encoding, start: int) -> Floats:
        end = start + len(self.mask)
        inside = (encoding.offsets[:, 1] > start) & (encoding.offsets[:, 0] < end)
        rows = encoding.vectors[inside]
        if len(rows) != 1 or encoding.offsets[inside].tolist() != [[start, end]]:
            raise SystemExit(
                f"{self.encoder.info.name} makes {len(rows)} tokens of {self.mask!r}, not one:"
                " name the mask of its own vocabulary"
            )
        vector: Floats = rows[0]
        return vector
