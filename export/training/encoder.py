"""A trained folder as the product's ``Encoder``: float32 in torch, for scores while training.

The shipped model runs on ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from export.training.model import SpanEncoder, batches, run
from export.training.texts import Cutter
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.model_folder import CONTEXT
from hybrid_search.text.types import Encoding, Floats

OVERLAP = 32
BUDGET = 2048


class TorchEncoder:
    """Runs `model`; `dimension` takes the first numbers of its vectors.

    Texts over `limit` tokens are read in windows that overlap.
    """

    def __init__(
        self, model: SpanEncoder, cutter: Cutter, dimension: int | None = None, limit: int = 254
    ) -> None:
        self.model, self._limit = model, limit
        self._cutter = Cutter(cutter.path.parent, limit=1 << 30)
        self._dimension = dimension or model.hidden

    @property
    def info(self) -> EncoderInfo:
        """The description of no folder, as its fingerprint says."""
        return EncoderInfo("in training", "in training", self._dimension, "float32", CONTEXT)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return token vectors and code-point offsets of each text, in order.

        float32 ``[tokens, dimension]`` and int32 ``[tokens, 2]``.
        """
        tokenized = self._cutter.tokenize(texts)
        vectors: list[Floats] = [
            np.zeros((len(text.ids), self._dimension), dtype=np.float32) for text in tokenized
        ]
        windows = [
            (i, *window)
            for i, text in enumerate(tokenized)
            for window in _windows(len(text.ids), self._limit)
        ]
        edge = len(self._cutter.before)
        for batch in batches([end - start for _, start, end, _, _ in windows], BUDGET):
            parts = [windows[w][:3] for w in batch]
            rows = [tokenized[i].ids[start:end] for i, start, end in parts]
            with torch.no_grad():
                hidden, _ = run(self.model, self._cutter, rows)
            batch_vectors = hidden[:, edge:, : self._dimension].cpu().numpy()
            for row, w in zip(batch_vectors, batch, strict=True):
                i, start, _, keep, keep_end = windows[w]
                vectors[i][keep:keep_end] = row[keep - start : keep_end - start]
        return [
            Encoding(text_vectors, text.offsets)
            for text_vectors, text in zip(vectors, tokenized, strict=True)
        ]


class PrefixEncoder:
    """Runs `encoder`, caches its encodings, and returns the first `dimension` numbers.

    So small vectors are scored without reading the texts again.
    """

    def __init__(self, encoder: TorchEncoder) -> None:
        self._encoder, self._encodings = encoder, dict[str, Encoding]()
        self.dimension = encoder.info.dimension

    @property
    def info(self) -> EncoderInfo:
        """The info of the encoder, with this dimension."""
        return replace(self._encoder.info, dimension=self.dimension)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """See `Encoder.encode`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._encodings]
        self._encodings.update(zip(new, self._encoder.encode(new), strict=True))
        return [
            Encoding(
                self._encodings[text].vectors[:, : self.dimension], self._encodings[text].offsets
            )
            for text in texts
        ]


def _windows(count: int, limit: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end, and the part to keep, of windows over `count` tokens.

    One window if they fit, as in `hybrid_search.encoder.onnx`.
    """
    start, keep = 0, 0
    while count - start > limit:
        end = start + limit
        yield start, end, keep, end - OVERLAP // 2
        start, keep = end - OVERLAP, end - OVERLAP // 2
    if count:
        yield start, count, keep, count
