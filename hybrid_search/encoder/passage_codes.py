"""Passages through the encoder: the texts it is shown, and token codes from what it returns."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.encoder.base import Encoder
from hybrid_search.text import token_codes
from hybrid_search.text.types import Document, Encoding, Passage, TokenCodes


def encode_passages(
    encoder: Encoder, document: Document, batch: Sequence[Passage]
) -> list[TokenCodes]:
    """The token codes of some passages of `document`, encoded together."""
    return pack_token_codes(
        encoder.info.dimension, batch, encoder.encode(encoder_texts(document, batch))
    )


def encoder_texts(document: Document, batch: Sequence[Passage]) -> list[str]:
    """The texts that the encoder is shown for some passages: one for each of their parts."""
    return [
        document.text[part.window_start : part.end] for passage in batch for part in passage.parts
    ]


def pack_token_codes(
    dimension: int, batch: Sequence[Passage], encodings: Sequence[Encoding]
) -> list[TokenCodes]:
    """Token codes of passages from the encodings of their `windows`, in the same order."""
    remaining = iter(encodings)
    return [
        token_codes.pack(
            *token_codes.gather(passage, [next(remaining) for _ in passage.parts], dimension)
        )
        for passage in batch
    ]
