"""Encoding of passages: the texts to encode, and word codes from the encodings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
        encodings = encoder.encode(encoder_texts(document, part))
        tokens += _gather(part, encodings, encoder.info.dimension)
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

    `texts` are those of the passages, `used` is the model's codebook, and `bits` are those of one
    number of a vector. With a `prior` the codes have clause boundaries.
    """
    all_tokens = _gather(batch, encodings, used.dimension)
    return [
        _pack(text, tokens, used, bits, prior)
        for text, tokens in zip(texts, all_tokens, strict=True)
    ]


def _gather(
    batch: Sequence[Passage], encodings: Sequence[Encoding], dimension: int
) -> Iterator[PassageTokens]:
    """Yield the tokens of each passage from the encodings of all parts."""
    remaining = iter(encodings)
    for passage in batch:
        yield word_codes.gather(passage, [next(remaining) for _ in passage.parts], dimension)


def _pack(
    text: str, tokens: PassageTokens, used: Codebook, bits: int, prior: SpanPrior | None
) -> WordCodes:
    boundaries = encode_boundaries(tokens, prior.boundaries, text) if prior else None
    return word_codes.pack(tokens, used, bits, boundaries)
