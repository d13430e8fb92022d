"""A phrase's vector, and the best spans of a single text: what can be done with an encoder and no index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search import passages, spans, tokens
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.results import Span
from hybrid_search.types import Document, Encoding, Floats, Passage, TokenCodes, Turn

ENCODE_PASSAGES = 64
"""Passages that go through the encoder together: enough to sort by length, and bounded memory for a text of any size."""


def vector(encoder: Encoder, phrase: str, context: str | None = None) -> Floats:
    """The unit vector of `phrase`, float32 ``[dimension]``: the mean of its tokens, special tokens left out.

    With `context`, a text in which the phrase occurs (the first time, in any case), its tokens are taken from there. Raises UsageError for a
    phrase without a token, or one that the context does not hold.
    """
    text = phrase if context is None else context
    start, end = (0, len(phrase)) if context is None else _place(phrase, context)
    encoding = encoder.encode([text])[0]
    inside = (encoding.offsets[:, 1] > start) & (encoding.offsets[:, 0] < end)
    found: Floats = encoding.vectors[inside].sum(axis=0)
    length = float(np.linalg.norm(found))
    if not length:
        raise UsageError(f"the phrase {phrase[:60]!r} has no word: give at least one")
    return found / np.float32(length)


def _place(phrase: str, context: str) -> tuple[int, int]:
    """Start and end of the first occurrence of `phrase` in `context`, in any case. Folding makes some letters two: "ß" is "ss"."""
    wanted = phrase.casefold()
    found = context.casefold().find(wanted)
    if found < 0:
        raise UsageError(f"the context {context[:60]!r} does not contain the phrase {phrase[:60]!r}: give a text in which it occurs")
    places = [place for place, letter in enumerate(context) for _ in letter.casefold()]
    return (places[found], places[found + len(wanted) - 1] + 1) if wanted else (0, 0)


def encode(encoder: Encoder, document: Document, cut: Sequence[Passage]) -> list[TokenCodes]:
    """The token codes of some passages of `document`, encoded together."""
    return pack(encoder.info.dimension, cut, encoder.encode(windows(document, cut)))


def windows(document: Document, cut: Sequence[Passage]) -> list[str]:
    """The texts that the encoder is shown for some passages: one for each of their parts."""
    return [document.text[part.window_start : part.end] for passage in cut for part in passage.parts]


def pack(dimension: int, cut: Sequence[Passage], encodings: Sequence[Encoding]) -> list[TokenCodes]:
    """Token codes of passages from the encodings of their `windows`, in the same order."""
    left = iter(encodings)
    return [tokens.pack(*tokens.gather(passage, [next(left) for _ in passage.parts], dimension)) for passage in cut]


def best_spans(encoder: Encoder, phrase: str, text: str, k: int = 1, context: str | None = None) -> list[Span]:
    """The `k` best spans of `text` that do not overlap, best first. Exact: every span of 1..20 words is scored. No word, no span."""
    if k < 1:
        raise UsageError(f"k is {k}: ask for at least one span")
    query = vector(encoder, phrase, context)
    document = Document("", text, (Turn(text),))
    cut, found = list(passages.split(document)), []
    for start in range(0, len(cut), ENCODE_PASSAGES):
        some = cut[start : start + ENCODE_PASSAGES]
        for passage, coded in zip(some, encode(encoder, document, some), strict=True):
            found += best_in(tokens.cosines(query, coded), coded, text[passage.start : passage.end], passage.start, k)
    return apart(found, k)


def best_in(scores: Floats, coded: TokenCodes, text: str, start: int, k: int) -> list[Span]:
    """The `k` best spans of one passage that do not overlap, given the `scores` of all. The passage is `text` and begins at `start`."""
    first, last = spans.bounds(coded.counts)
    found = []
    for number in spans.best(scores, coded.counts, k):
        begin, end = int(coded.words[first[number], 0]), int(coded.words[last[number], 1])
        found.append(Span(start + begin, start + end, text[begin:end], float(scores[number]), 0, start + begin, start + end))
    return found


def apart(found: Sequence[Span], k: int) -> list[Span]:
    """The `k` best of `found`, best first, none overlapping another."""
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (-span.cosine, span.start, span.end)):
        if len(kept) < k and all(span.end <= other.start or span.start >= other.end for other in kept):
            kept.append(span)
    return kept


def similarity(encoder: Encoder, a: str, b: str, context1: str | None = None, context2: str | None = None) -> float:
    """The cosine of two phrases' vectors, each inside its context where one is given."""
    return float(vector(encoder, a, context1) @ vector(encoder, b, context2))
