"""Encoding of passages: the texts to encode, and word codes from the encodings."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.encoder.base import Encoder, codebook, span_prior
from hybrid_search.text import word_codes
from hybrid_search.text.boundaries import encode_boundaries
from hybrid_search.text.passages import split_batches
from hybrid_search.text.residual_codes import DEFAULT_BITS
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Document, Encoding, Passage, PassageTokens, WordCodes


def encode_passages(
    encoder: Encoder, document: Document, batch: Sequence[Passage], bits: int = DEFAULT_BITS
) -> list[WordCodes]:
    """Return the word codes of some passages of `document`, encoded together in batches.

    `bits` are those of one number of a vector.
    """
    used, prior = codebook(encoder), span_prior(encoder)
    tokens_by_passage = encode_tokens(encoder, document, batch)
    return [
        _pack(document.text[passage.start : passage.end], tokens, used, bits, prior)
        for passage, tokens in zip(batch, tokens_by_passage, strict=True)
    ]


def encode_tokens(
    encoder: Encoder, document: Document, batch: Sequence[Passage]
) -> list[PassageTokens]:
    """Return the token vectors of some passages of `document`, encoded together in batches."""
    tokens: list[PassageTokens] = []
    for part in split_batches(batch, len(batch), lambda passage: passage):
        encodings = iter(encoder.encode(encoder_texts(document, part)))
        for passage in part:
            own = [next(encodings) for _ in passage.parts]
            tokens.append(word_codes.gather(passage, own, encoder.info.dimension))
    return tokens


def encoder_texts(document: Document, batch: Sequence[Passage]) -> list[str]:
    """Return the texts to encode for some passages, one per part."""
    return [
        document.text[part.window_start : part.end] for passage in batch for part in passage.parts
    ]


def pack_word_codes(
    texts: Sequence[str],
    batch: Sequence[Passage],
    encodings: Sequence[Encoding],
    used: Codebook,
    bits: int = DEFAULT_BITS,
    prior: SpanPrior | None = None,
) -> list[WordCodes]:
    """Return the word codes of passages from the encodings of their `encoder_texts`, in order.

    Args:
        texts: The texts of the passages.
        batch: The passages.
        encodings: One for each part of each passage.
        used: The codebook of the model.
        bits: The bits of one number of a vector.
        prior: If given, the codes have clause boundaries.
    """
    remaining = iter(encodings)
    packed = []
    for text, passage in zip(texts, batch, strict=True):
        part_encodings = [next(remaining) for _ in passage.parts]
        tokens = word_codes.gather(passage, part_encodings, used.dimension)
        packed.append(_pack(text, tokens, used, bits, prior))
    return packed


def _pack(
    text: str, tokens: PassageTokens, used: Codebook, bits: int, prior: SpanPrior | None
) -> WordCodes:
    boundaries = encode_boundaries(tokens, prior.boundaries, text) if prior else None
    return word_codes.pack(tokens, used, bits, boundaries)
