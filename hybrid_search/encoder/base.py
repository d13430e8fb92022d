"""The encoder seam: texts in, token vectors with their offsets out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hybrid_search.text.types import Encoding


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What an index must know of the model that wrote it.

    Vectors of equal `fingerprint` can be compared, whatever the `precision`.

    `sizes` are dimensions that its vectors can be cut to, the usual one first; none where it has
    but its own.
    """

    name: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    sizes: tuple[int, ...] = ()


@dataclass(slots=True)
class Padding:
    """How many tokens an encoder has computed so far, special ones and padding included.

    One that counts them has it as its `padding`.
    """

    cells: int = 0


class Encoder(Protocol):
    """Anything that gives every token of a text a vector such that a span's vector is the mean of
    its tokens'.
    """

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of it."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Token vectors float32 ``[tokens, dimension]`` and code-point offsets int32 ``[tokens,
        2]`` of each text, in order.
        """
        ...
