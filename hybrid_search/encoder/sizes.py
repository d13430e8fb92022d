"""Smaller vectors from the same pass: an encoder's vectors cut to their first numbers, where it was trained for that (Matryoshka representation
learning, arXiv:2205.13147). The cut commutes with the mean, so a span's vector is that of its tokens still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybrid_search.encoder.artifact import Artifact
from hybrid_search.encoder.base import Encoder, EncoderInfo, Padding
from hybrid_search.errors import UsageError
from hybrid_search.types import Encoding


def sized(encoder: Encoder, dimension: int | None = None) -> Encoder:
    """`encoder` with vectors of `dimension` numbers; of the usual size, where None is given.

    Raises UsageError for a size that is not one of the model's.
    """
    info = encoder.info
    wanted = dimension or usual(info)
    if wanted == info.dimension:
        return encoder
    if wanted not in info.sizes:
        there = ", ".join(map(str, sorted({info.dimension, *info.sizes})))
        raise UsageError(f"dimension is {wanted}, and the vectors of model {info.name} have {there}: use one of these")
    return Cut(encoder, wanted)


def usual(model: Artifact | EncoderInfo) -> int:
    """The size that a model's vectors have where none is asked for: the first of its `sizes`, or the whole `dimension`."""
    return next(iter(model.sizes), model.dimension)


@dataclass(frozen=True, slots=True)
class Cut:
    """An `Encoder` whose vectors are the first `dimension` numbers of `whole`'s. They are not made unit length: no cosine needs it."""

    whole: Encoder
    dimension: int

    @property
    def info(self) -> EncoderInfo:
        """What an index must know: vectors of one size cannot be compared with those of another."""
        whole = self.whole.info
        return replace(whole, dimension=self.dimension, fingerprint=f"{whole.fingerprint}-{self.dimension}")

    @property
    def padding(self) -> Padding:
        """What the whole encoder has computed."""
        return getattr(self.whole, "padding", Padding())

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """See `Encoder.encode`."""
        return [Encoding(np.ascontiguousarray(each.vectors[:, : self.dimension]), each.offsets) for each in self.whole.encode(texts)]
