"""Cosines of a query with the spans of many passages, which are scored together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hybrid_search.text import word_codes
from hybrid_search.text.joined_words import JoinedCodes, join_sound, join_stored
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.text.word_vectors import WordQuery

JOIN_PASSAGES = 128
"""Number of passages scored together.

With 512 the arrays are so large that the system allocates them anew each time, which took longer
than the scoring itself.
"""

Stored = TypeVar("Stored", WordCodes, bytes)


def span_cosines_by_passage(
    query: Floats, passages: Sequence[WordCodes]
) -> Iterator[Floats | None]:
    """Yield the cosines of each passage's spans, or None where its codes are damaged."""
    return _score_joined(query, passages, join_sound)


def span_cosines_by_stored_passage(
    query: Floats, stored: Sequence[bytes]
) -> Iterator[Floats | None]:
    """Yield the same of stored bytes, faster than after `word_codes.read`."""
    return _score_joined(query, stored, join_stored)


def _score_joined(
    query: Floats,
    passages: Sequence[Stored],
    join: Callable[[Sequence[Stored], int], JoinedCodes | None],
) -> Iterator[Floats | None]:
    """Yield the cosines of each passage's spans, or None where its codes are damaged.

    `JOIN_PASSAGES` passages are scored together, to pay numpy's cost per call once.
    """
    prepared: WordQuery | None = None
    for start in range(0, len(passages), JOIN_PASSAGES):
        block = passages[start : start + JOIN_PASSAGES]
        joined = join(block, len(query))
        if joined is not None:
            if prepared is None or prepared.codebook is not joined.codes.codebook:
                prepared = WordQuery(query, joined.codes.codebook)
            yield from joined.split(word_codes.multiply(prepared, joined.codes))
        elif len(block) == 1:
            yield None
        else:  # a passage is damaged: score each one alone
            for passage in block:
                yield from _score_joined(query, [passage], join)
