"""Encoding of passages: the texts to encode, and token codes from the encodings."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.text import token_codes
from hybrid_search.text.boundaries import add_boundaries
from hybrid_search.text.passages import split_batches
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Document, Encoding, Passage, TokenCodes


def encode_passages(
    encoder: Encoder, document: Document, batch: Sequence[Passage]
) -> list[TokenCodes]:
    """Return the token codes of some passages of `document`, encoded together in batches."""
    batches = split_batches(batch, len(batch), lambda passage: passage)
    return [codes for part in batches for codes in _encode(encoder, document, part)]


def _encode(encoder: Encoder, document: Document, batch: Sequence[Passage]) -> list[TokenCodes]:
    texts = [document.text[passage.start : passage.end] for passage in batch]
    encodings = encoder.encode(encoder_texts(document, batch))
    return pack_token_codes(texts, batch, encodings, encoder.info.dimension, span_prior(encoder))


def encoder_texts(document: Document, batch: Sequence[Passage]) -> list[str]:
    """Return the texts to encode for some passages, one per part."""
    return [
        document.text[part.window_start : part.end] for passage in batch for part in passage.parts
    ]


def pack_token_codes(
    texts: Sequence[str],
    batch: Sequence[Passage],
    encodings: Sequence[Encoding],
    dimension: int,
    prior: SpanPrior | None = None,
) -> list[TokenCodes]:
    """Return the token codes of passages from the encodings of their `encoder_texts`, in order.

    With a `prior` they include clause boundaries, which are computed from the passages' `texts`.
    """
    remaining = iter(encodings)
    packed = []
    for text, passage in zip(texts, batch, strict=True):
        part_encodings = [next(remaining) for _ in passage.parts]
        codes = token_codes.pack(*token_codes.gather(passage, part_encodings, dimension))
        packed.append(add_boundaries(codes, prior.boundaries, text) if prior else codes)
    return packed
