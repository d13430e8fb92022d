"""Smaller vectors: truncation to their first dimensions.

The model must be trained for this (Matryoshka representation learning, arXiv:2205.13147).
Truncation commutes with the mean, so a span's vector is still the mean of its tokens' vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybrid_search.encoder.base import Encoder, EncoderInfo, codebook, span_prior
from hybrid_search.encoder.model_folder import Artifact
from hybrid_search.errors import UsageError
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Encoding


def truncate_encoder(encoder: Encoder, dimension: int | None = None) -> Encoder:
    """Return `encoder` truncated to `dimension`, by default the model's usual size.

    Its codebook is loaded, so that stored codes can be read.

    Raises:
        UsageError: If the dimension is not one of the model's sizes.
    """
    info = encoder.info
    target_dimension = dimension or default_dimension(info)
    if target_dimension not in (info.dimension, *info.sizes):
        available = ", ".join(map(str, sorted({info.dimension, *info.sizes})))
        raise UsageError(
            f"dimension is {target_dimension}, but model {info.name} has vectors of {available}: "
            "use one of these"
        )
    if target_dimension != info.dimension:
        encoder = TruncatedEncoder(encoder, target_dimension)
    codebook(encoder)
    return encoder


def default_dimension(model: Artifact | EncoderInfo) -> int:
    """Return a model's usual size: the first of its `sizes`, or else its full `dimension`."""
    return next(iter(model.sizes), model.dimension)


def truncated_fingerprint(fingerprint: str, dimension: int) -> str:
    """Return the fingerprint of a model's vectors truncated to `dimension`."""
    return f"{fingerprint}-{dimension}"


@dataclass(frozen=True, slots=True)
class TruncatedEncoder:
    """An `Encoder` that truncates the vectors of another encoder to `dimension`.

    The vectors are not normalized again, as cosines do not need it.
    """

    full_encoder: Encoder
    dimension: int

    @property
    def info(self) -> EncoderInfo:
        """The full encoder's info with this dimension and a fingerprint specific to it."""
        full_info = self.full_encoder.info
        return replace(
            full_info,
            dimension=self.dimension,
            fingerprint=truncated_fingerprint(full_info.fingerprint, self.dimension),
        )

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the span prior of the full encoder's model."""
        return span_prior(self.full_encoder, dimension)

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the codebook of the full encoder's model for a dimension."""
        return codebook(self.full_encoder, dimension)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text, see `Encoder.encode`."""
        return [
            Encoding(np.ascontiguousarray(encoding.vectors[:, : self.dimension]), encoding.offsets)
            for encoding in self.full_encoder.encode(texts)
        ]
