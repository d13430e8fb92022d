"""Phrase vectors, with or without a context, and the similarity of two phrases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import regex

from hybrid_search import parameters
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.text.types import Encoding, Floats


def query_vector(encoder: Encoder, phrase: str, context: str | None = None) -> Floats:
    """Return the unit vector of `phrase`, float32 ``[dimension]``.

    It is the mean of the phrase's token vectors, without special tokens. With `context`, a text
    that contains the phrase, the tokens of its first occurrence there are used, ignoring case.

    Raises UsageError if the phrase has no token, or does not occur in the context.
    """
    return query_vectors(encoder, [phrase], context)[0]


def query_vectors(
    encoder: Encoder, phrases: Sequence[str], context: str | None = None
) -> list[Floats]:
    """Return the unit vector of each phrase, as `query_vector` does.

    A context is encoded once for all phrases. Phrases are encoded one by one, because in int8 a
    vector depends slightly on the rest of its batch.
    """

    @cache
    def encode(text: str) -> Encoding:
        return encoder.encode([text])[0]

    vectors = []
    for phrase in phrases:
        place = (0, len(phrase)) if context is None else _find_phrase(phrase, context)
        vectors.append(_pool(encode(phrase if context is None else context), place, phrase))
    return vectors


def _pool(encoding: Encoding, place: tuple[int, int], phrase: str) -> Floats:
    """Return the unit vector of the tokens in `place`; raise UsageError if there are none."""
    start, end = place
    inside = (encoding.offsets[:, 1] > start) & (encoding.offsets[:, 0] < end)
    vector_sum: Floats = encoding.vectors[inside].sum(axis=0)
    length = float(np.linalg.norm(vector_sum))
    if not length:
        raise UsageError(f"the phrase {phrase[:60]!r} has no word: give at least one")
    return vector_sum / np.float32(length)


def _find_phrase(phrase: str, context: str) -> tuple[int, int]:
    """Return start and end of `phrase` in `context`, ignoring case, preferably as whole words."""
    folded = "".join(letter.casefold() for letter in context)
    # folding turns some letters into two ("ß" to "ss"): map back to unfolded offsets
    places = [place for place, letter in enumerate(context) for _ in letter.casefold()]
    pattern = regex.escape(phrase.casefold())
    match = regex.search(rf"(?<!\w){pattern}(?!\w)", folded) or regex.search(pattern, folded)
    if not match:
        raise UsageError(
            f"the context {context[:60]!r} does not contain the phrase {phrase[:60]!r}: "
            "give a text in which it occurs"
        )
    return (places[match.start()], places[match.end() - 1] + 1) if phrase else (0, 0)


def similarity(
    encoder: Encoder, a: str, b: str, context1: str | None = None, context2: str | None = None
) -> float:
    """Return the cosine of two phrases, each encoded in its context if it has one."""
    for name, phrase in (("a", a), ("b", b)):
        parameters.check_text(name, phrase, parameters.MAX_PHRASE)
    for name, context in (("context1", context1), ("context2", context2)):
        parameters.check_context(name, context)
    return float(query_vector(encoder, a, context1) @ query_vector(encoder, b, context2))
