"""Smaller vectors from the same pass: an encoder's vectors cut to their first numbers, where it was
trained for that (Matryoshka representation learning, arXiv:2205.13147).

The cut commutes with the mean, so a span's vector is that of its tokens still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybrid_search.encoder.base import Encoder, EncoderInfo, Padding
from hybrid_search.encoder.model_folder import Artifact
from hybrid_search.errors import UsageError
from hybrid_search.text.types import Encoding


def truncate_encoder(encoder: Encoder, dimension: int | None = None) -> Encoder:
    """`encoder` with vectors of `dimension` numbers; of the usual size, where None is given.

    Raises UsageError for a size that is not one of the model's.
    """
    info = encoder.info
    target_dimension = dimension or default_dimension(info)
    if target_dimension == info.dimension:
        return encoder
    if target_dimension not in info.sizes:
        available = ", ".join(map(str, sorted({info.dimension, *info.sizes})))
        raise UsageError(
            f"dimension is {target_dimension}, and the vectors of model {info.name} have {available}: use one of these"
        )
    return TruncatedEncoder(encoder, target_dimension)


def default_dimension(model: Artifact | EncoderInfo) -> int:
    """The size that a model's vectors have where none is asked for: the first of its `sizes`, or
    the whole `dimension`.
    """
    return next(iter(model.sizes), model.dimension)


@dataclass(frozen=True, slots=True)
class TruncatedEncoder:
    """An `Encoder` whose vectors are the first `dimension` numbers of `whole`'s.

    They are not made unit length: no cosine needs it.
    """

    full_encoder: Encoder
    dimension: int

    @property
    def info(self) -> EncoderInfo:
        """What an index must know: vectors of one size cannot be compared with those of another."""
        full_info = self.full_encoder.info
        return replace(
            full_info,
            dimension=self.dimension,
            fingerprint=f"{full_info.fingerprint}-{self.dimension}",
        )

    @property
    def padding(self) -> Padding:
        """What the whole encoder has computed."""
        return getattr(self.full_encoder, "padding", Padding())

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """See `Encoder.encode`."""
        return [
            Encoding(np.ascontiguousarray(encoding.vectors[:, : self.dimension]), encoding.offsets)
            for encoding in self.full_encoder.encode(texts)
        ]
