"""The passages of a block as one, with what depends on no phrase: places, clauses, priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.text import word_codes
from hybrid_search.text.boundaries import join_probabilities
from hybrid_search.text.joined_words import join_sound
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.topics.types import Integers, ScannedBlock

CLAUSE_BOUNDARY = 0.5
"""The probability of a boundary from which a gap between words parts two clauses."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedPassages:
    """The sound passages of a block as one, and what does not depend on a phrase.

    Attributes:
        tokens: Their word codes; with the places of the words in their passages.
        owners: The position in the block of each word's passage, int64 ``[words]``.
        starts: Where each word begins in its document, int64 ``[words]``.
        ends: Where it ends.
        clause_starts: Where its clause begins.
        clause_ends: Where its clause ends.
        priors: The prior of each span, float32 ``[spans]``; None without a model of clauses.
    """

    tokens: WordCodes
    owners: Integers
    starts: Integers
    ends: Integers
    clause_starts: Integers
    clause_ends: Integers
    priors: Floats | None


def join_passages(
    block: ScannedBlock, dimension: int, prior: SpanPrior | None
) -> tuple[JoinedPassages | None, int]:
    """Return the sound passages of a block as one, None if they have no word.

    Args:
        block: Some passages.
        dimension: That of the index.
        prior: The model of clauses, if there is one.

    Returns:
        The passages, and the number of those that were left out: their codes are damaged.
    """
    sound, tokens = _join_sound(block.passages, dimension)
    damaged = len(block.passages) - len(sound)
    if not len(tokens.words):
        return None, damaged
    return _measure_words(block, sound, tokens, prior), damaged


def _join_sound(
    passages: Sequence[ScannedPassage], dimension: int
) -> tuple[Sequence[int], WordCodes]:
    """Return the positions of the passages with sound codes, and their codes as one."""
    codes = [passage.tokens for passage in passages]
    joined = join_sound(codes, dimension)
    if joined is not None:
        return range(len(codes)), joined.codes
    sound = [
        number for number, tokens in enumerate(codes) if word_codes.is_sound(tokens, dimension)
    ]
    sound_codes = [codes[number] for number in sound]
    joined = join_sound(sound_codes, dimension) if sound else None
    return sound, joined.codes if joined else word_codes.UNREADABLE


def _measure_words(
    block: ScannedBlock, sound: Sequence[int], tokens: WordCodes, prior: SpanPrior | None
) -> JoinedPassages:
    passages = [block.passages[number] for number in sound]
    words = [passage.tokens.words for passage in passages]
    counts = [len(rows) for rows in words]
    owners = np.repeat(np.array(sound, dtype=np.int64), counts)
    places = np.concatenate(words).astype(np.int64)
    places += np.repeat([passage.start for passage in passages], counts)[:, None]
    starts, ends = places[:, 0], places[:, 1]
    if prior is None:
        return JoinedPassages(tokens, owners, starts, ends, starts, ends, None)
    codes = [passage.tokens for passage in passages]
    priors = np.concatenate(list(prior.score_passages(codes)))
    begins_clause = _find_clauses(codes)
    first_words = np.flatnonzero(begins_clause)
    clauses = np.cumsum(begins_clause) - 1
    last_words = np.append(first_words[1:], len(starts)) - 1
    return JoinedPassages(
        tokens,
        owners,
        starts,
        ends,
        starts[first_words[clauses]],
        ends[last_words[clauses]],
        priors,
    )


def _find_clauses(codes: Sequence[WordCodes]) -> NDArray[np.bool_]:
    """Return which words of all passages begin a clause, bool ``[words]``."""
    begins_clause = join_probabilities(codes) >= CLAUSE_BOUNDARY
    counts = [len(tokens.words) for tokens in codes]
    first_words = np.cumsum(counts) - counts
    begins_clause[first_words[np.array(counts) > 0]] = True
    return begins_clause
