"""The encoder protocol: texts in, token vectors with their offsets out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hybrid_search.encoder.devices import CPU
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Encoding


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """The facts about a model that its encoder declares and its indexes record.

    Two infos are equal if indexes cannot tell their encoders apart: the provider does not count.

    Attributes:
        name: The model's name.
        fingerprint: Vectors of equal fingerprints can be compared, whatever the `precision`.
        dimension: The dimension of the vectors.
        precision: The precision that the graph runs in.
        context: What the encoder reads around a span.
        sizes: The dimensions that the vectors can be cut to, the usual one first; empty if the
            model has only its own.
        provider: The ONNX Runtime provider that runs; empty for an encoder on no such runtime.
    """

    name: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    sizes: tuple[int, ...] = ()
    provider: str = field(default="", compare=False)

    @property
    def is_accelerated(self) -> bool:
        """True if the encoder is known to run on another device than the CPU."""
        return self.provider not in ("", CPU)


@dataclass(slots=True)
class Padding:
    """A counter of the tokens an encoder has computed, special tokens and padding included."""

    cells: int = 0


class Encoder(Protocol):
    """Gives each token of a text a vector. A span's vector is the mean of its tokens' vectors."""

    @property
    def info(self) -> EncoderInfo:
        """The facts about this encoder's model that an index records."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text, in order.

        The vectors are float32 ``[tokens, dimension]``, the offsets int32 ``[tokens, 2]`` in code
        points.
        """
        ...


@runtime_checkable
class PaddingCounter(Protocol):
    """The capability of an encoder that counts the tokens it computes."""

    @property
    def padding(self) -> Padding:
        """The counter, which grows with every call of `encode`."""
        ...


@runtime_checkable
class PriorLoader(Protocol):
    """The capability of an encoder whose model tells which spans people mark."""

    @property
    def info(self) -> EncoderInfo:
        """The facts about the encoder's model."""
        ...

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the prior of spans for vectors of a dimension, if the model has one."""
        ...


def span_prior(encoder: object) -> SpanPrior | None:
    """Return the prior of spans for an encoder's vectors, if its model has one.

    An executor of encoders counts as one.
    """
    if not isinstance(encoder, PriorLoader):
        return None
    return encoder.load_prior(encoder.info.dimension)


def padding_counter(encoder: Encoder) -> Padding:
    """Return the encoder's counter, or one that stays at 0 if the encoder does not count."""
    return encoder.padding if isinstance(encoder, PaddingCounter) else Padding()
