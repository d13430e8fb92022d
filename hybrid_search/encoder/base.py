"""The encoder protocol: texts in, token vectors with their offsets out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hybrid_search.text import codebook as codebooks
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Encoding


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """The properties of a model, as declared by its encoder and recorded by indexes.

    Infos are equal if their encoders are interchangeable for indexes; the provider is not compared.

    Attributes:
        name: The model's name.
        fingerprint: Vectors with the same fingerprint are comparable, whatever the `precision`.
        dimension: The dimension of the vectors.
        precision: The precision of the graph.
        context: The context of a span that the encoder reads.
        sizes: The dimensions to which the vectors can be truncated, the usual one first; empty if
            there is only the full one.
        codebook: The name of the codebook of stored codes.
        provider: The ONNX Runtime provider in use; empty for other runtimes.
    """

    name: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    sizes: tuple[int, ...] = ()
    codebook: str = codebooks.PLAIN_NAME
    provider: str = field(default="", compare=False)


class Encoder(Protocol):
    """An encoder that gives each token of a text a vector; a span's vector is their mean."""

    @property
    def info(self) -> EncoderInfo:
        """The properties of this encoder's model that an index records."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text, in order.

        The vectors are float32 ``[tokens, dimension]``, the offsets int32 ``[tokens, 2]`` in code
        points.
        """
        ...


@runtime_checkable
class PriorLoader(Protocol):
    """The capability of an encoder whose model has a span prior."""

    @property
    def info(self) -> EncoderInfo:
        """The properties of the encoder's model."""
        ...

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the span prior for vectors of a dimension, if the model has one."""
        ...


def span_prior(encoder: object) -> SpanPrior | None:
    """Return the span prior for an encoder's vectors, if its model has one.

    `encoder` may also be an executor.
    """
    if not isinstance(encoder, PriorLoader):
        return None
    return encoder.load_prior(encoder.info.dimension)


class Described(Protocol):
    """Anything that says which model it runs: an encoder, or an executor."""

    @property
    def info(self) -> EncoderInfo:
        """The properties of the model."""
        ...


@runtime_checkable
class CodebookLoader(Described, Protocol):
    """The capability of an encoder whose model has a codebook."""

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the codebook for vectors of a dimension."""
        ...


def codebook(encoder: Described) -> Codebook:
    """Return the codebook for an encoder's vectors, the plain one if its model has none."""
    dimension = encoder.info.dimension
    if isinstance(encoder, CodebookLoader):
        return encoder.load_codebook(dimension)
    return codebooks.plain(dimension)
