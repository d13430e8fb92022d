"""The encoder protocol: texts in, token vectors with their offsets out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hybrid_search.text import codebook as codebooks
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Encoding


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """The properties of a model, as declared by its encoder and recorded by indexes.

    Infos are equal if their encoders are interchangeable for indexes; languages and provider are
    not compared.

    Attributes:
        name: The model's name.
        fingerprint: Vectors with the same fingerprint are comparable, whatever the `precision`.
        dimension: The dimension of the vectors.
        precision: The precision of the graph.
        context: The context of a span that the encoder reads.
        sizes: The dimensions to which the vectors can be truncated, the usual one first; empty if
            there is only the full one.
        codebook: The name of the codebook of stored codes.
        languages: The codes of the languages that it knows (``en``); empty if nobody says.
        provider: The ONNX Runtime provider in use; empty for other runtimes.
    """

    name: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    sizes: tuple[int, ...] = ()
    codebook: str = codebooks.PLAIN_NAME
    languages: tuple[str, ...] = field(default=(), compare=False)
    provider: str = field(default="", compare=False)


class Described(Protocol):
    """Anything that says which model it runs: an encoder, or an executor.

    If its model has a span prior or a codebook, it also has a method ``load_prior`` or
    ``load_codebook``, which returns that for vectors of a dimension.
    """

    @property
    def info(self) -> EncoderInfo:
        """The properties of its model that an index records."""


class Encoder(Described, Protocol):
    """An encoder that gives each token of a text a vector; a span's vector is their mean."""

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text, in order.

        The vectors are float32 ``[tokens, dimension]``, the offsets int32 ``[tokens, 2]`` in code
        points.
        """


def span_prior(encoder: Described, dimension: int | None = None) -> SpanPrior | None:
    """Return the span prior for vectors of an encoder, None if its model has none.

    They are truncated to `dimension`, if that is given.
    """
    load: Callable[[int], SpanPrior | None] = getattr(encoder, "load_prior", lambda _: None)
    return load(dimension or encoder.info.dimension)


def codebook(encoder: Described, dimension: int | None = None) -> Codebook:
    """Return the codebook for vectors of an encoder, the plain one if its model has none.

    They are truncated to `dimension`, if that is given.
    """
    load: Callable[[int], Codebook] = getattr(encoder, "load_codebook", codebooks.plain)
    return load(dimension or encoder.info.dimension)
