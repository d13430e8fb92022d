"""A phrase's vector, and the best spans of a single text: what can be done with an encoder and no index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import regex

from hybrid_search import passages, spans, tokens
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.results import Span
from hybrid_search.types import Document, Encoding, Floats, Ints, Passage, TokenCodes, Turn

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
    """Start and end of `phrase` in `context`, in any case: where it first stands as words, else where it first stands at all."""
    folded = "".join(letter.casefold() for letter in context)
    places = [place for place, letter in enumerate(context) for _ in letter.casefold()]  # folding makes some letters two: "ß" is "ss"
    wanted = regex.escape(phrase.casefold())
    found = regex.search(rf"(?<!\w){wanted}(?!\w)", folded) or regex.search(wanted, folded)
    if not found:
        raise UsageError(f"the context {context[:60]!r} does not contain the phrase {phrase[:60]!r}: give a text in which it occurs")
    return (places[found.start()], places[found.end() - 1] + 1) if phrase else (0, 0)


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
    cut, pieces = list(passages.split(document)), []
    for start in range(0, len(cut), ENCODE_PASSAGES):
        some = cut[start : start + ENCODE_PASSAGES]
        coded = encode(encoder, document, some)
        scored = zip(some, coded, tokens.cosines_of_each(query, coded), strict=True)
        pieces += [Piece.at(passage.start, codes, cosines) for passage, codes, cosines in scored]
    return [Span(start, end, text[start:end], cosine, 0, start, end) for _, start, end, cosine in best_places(pieces, k)]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """All spans of one passage: `cosines` float32, `starts` and `ends` int32 in code points of the document, each ``[spans]``."""

    cosines: Floats
    starts: Ints
    ends: Ints

    @classmethod
    def at(cls, start: int, coded: TokenCodes, cosines: Floats) -> Self:
        """Of a passage that begins at `start`."""
        first, last = spans.bounds(coded.counts)
        return cls(cosines, coded.words[first, 0] + np.int32(start), coded.words[last, 1] + np.int32(start))


def best_places(pieces: Sequence[Piece], k: int) -> list[tuple[int, int, int, float]]:
    """Number of the piece, start, end and cosine of the `k` best spans of a document that do not overlap, best first."""
    if not pieces:
        return []
    cosines, starts, ends = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("cosines", "starts", "ends"))
    owners = np.repeat(np.arange(len(pieces)), [len(piece.cosines) for piece in pieces])
    return [(int(owners[i]), int(starts[i]), int(ends[i]), float(cosines[i])) for i in spans.best(cosines, starts, ends, k)]


def similarity(encoder: Encoder, a: str, b: str, context1: str | None = None, context2: str | None = None) -> float:
    """The cosine of two phrases' vectors, each inside its context where one is given."""
    return float(vector(encoder, a, context1) @ vector(encoder, b, context2))
