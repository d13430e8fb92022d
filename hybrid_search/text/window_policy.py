"""Covering windows: the spans that become kNN vectors.

A few strided windows cover every turn. They only have to *find* a passage; the exact step then
scores every span in it. Storing all spans of 1..20 words would take 7 to 20 vectors per word.

The policy is a string stored with the index: ``6+12/2`` means windows of 6 and of 12 words, each
starting half a window after the previous one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hybrid_search.errors import UsageError
from hybrid_search.text import spans
from hybrid_search.text.types import Bytes, Floats, Ints, WordCodes
from hybrid_search.text.word_codes import vectors


def parse(policy: str) -> tuple[tuple[int, ...], int]:
    """Return the window lengths of a policy in words, and the divisor that gives the stride.

    Raises:
        UsageError: If the policy is malformed, or a length or the divisor is out of range.
    """
    lengths, _, divisor = policy.partition("/")
    try:
        parsed = tuple(sorted(int(number) for number in lengths.split("+"))), int(divisor or 1)
    except ValueError as error:
        raise UsageError(
            f"span policy {policy!r} is not of the form '6+12/2': "
            "give window lengths in words, a slash, and the strides per window"
        ) from error
    if not all(1 <= length <= spans.MAX_WORDS for length in parsed[0]) or parsed[1] < 1:
        raise UsageError(
            f"span policy {policy!r} is out of range: lengths must be 1..{spans.MAX_WORDS} words "
            "and the divisor 1 or more"
        )
    return parsed


@lru_cache(maxsize=4096)
def windows(words: int, core: int, policy: str) -> Ints:
    """Return first and last word of each window over one part, int32 ``[windows, 2]``.

    Every window starts in the part's core; the last window ends with the part.
    """
    lengths, divisor = parse(policy)
    pairs: set[tuple[int, int]] = set()
    for length in (min(policy_length, words) for policy_length in lengths):
        starts = {*range(0, words - length + 1, max(1, length // divisor)), words - length}
        pairs |= {(start, start + length - 1) for start in starts if start < core}
    return np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)


def part_ranges(counts: Bytes) -> list[tuple[int, int, int]]:
    """Return (first word, number of words, number of core words) of each part of a passage.

    Derived from the span counts (`spans.ends_part`).
    """
    after = np.flatnonzero(spans.ends_part(counts)) + 1
    ranges, first = [], 0
    for end in after.tolist():
        ranges.append((first, end - first, int(np.count_nonzero(counts[first:end]))))
        first = end
    return ranges


def window_bounds(counts: Bytes, policy: str) -> Ints:
    """Return first and last word of a passage's covering windows, int32 ``[windows, 2]``."""
    bounds_by_part = [
        windows(words, core, policy) + first for first, words, core in part_ranges(counts)
    ]
    return np.concatenate(bounds_by_part) if bounds_by_part else np.zeros((0, 2), np.int32)


def window_vectors(tokens: WordCodes, policy: str, dimension: int | None = None) -> Floats:
    """Return the unit vectors of a passage's covering windows, float32 ``[windows, dimension]``.

    They are in the order of `window_bounds`. A window without tokens gets the zero vector, whose
    cosine with everything is 0. If `dimension` is given, vectors are truncated to it.
    """
    sums = spans.running_sums(vectors(tokens)[:, :dimension])
    window_ranges = window_bounds(tokens.counts, policy)
    rows = tokens.rows[window_ranges]
    window_sums = sums[rows[:, 1] + 1] - sums[rows[:, 0]]
    lengths = np.sqrt(np.einsum("ij,ij->i", window_sums, window_sums))
    unit: Floats = window_sums * spans.inverse(lengths)[:, None]
    return unit
