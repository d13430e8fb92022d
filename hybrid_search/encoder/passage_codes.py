"""Send passages through an encoder: the texts to encode, and token codes from the encodings."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.encoder.base import Encoder
from hybrid_search.text import token_codes
from hybrid_search.text.types import Document, Encoding, Passage, TokenCodes


def encode_passages(
    encoder: Encoder, document: Document, batch: Sequence[Passage]
) -> list[TokenCodes]:
    """Return the token codes of some passages of `document`, encoded together."""
    return pack_token_codes(
        encoder.info.dimension, batch, encoder.encode(encoder_texts(document, batch))
    )


def encoder_texts(document: Document, batch: Sequence[Passage]) -> list[str]:
    """Return the texts to encode for some passages: one for each of their parts."""
    return [
        document.text[part.window_start : part.end] for passage in batch for part in passage.parts
    ]


def pack_token_codes(
    dimension: int, batch: Sequence[Passage], encodings: Sequence[Encoding]
) -> list[TokenCodes]:
    """Return the token codes of passages from the encodings of their `encoder_texts`, in order."""
    remaining = iter(encodings)
    packed = []
    for passage in batch:
        part_encodings = [next(remaining) for _ in passage.parts]
        packed.append(token_codes.pack(*token_codes.gather(passage, part_encodings, dimension)))
    return packed
